package replica

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"

	"github.com/roost-batch/roost/internal/boltfile"
)

// metaStore stores the segments of the log, and raft's term and vote. A lost or changed
// vote could be given twice. It replaces raft-wal's own file by one with a checksum for
// each record.
type metaStore struct{ db *boltfile.DB }

func metaPath(dir string) string { return filepath.Join(dir, metadb.FileName) }

func metaKind() boltfile.ContentKind {
	return boltfile.ContentKind{Description: "term and vote of the replica",
		Buckets: []string{metadb.MetaBucket, metadb.StableBucket}}
}

// Load opens the file in dir and returns the state of the log.
func (s *metaStore) Load(dir string) (state types.PersistentState, err error) {
	if s.db == nil {
		if s.db, err = boltfile.Open(metaPath(dir), metaKind(), nil); err != nil {
			return state, err
		}
	}
	err = s.db.View(func(tx *boltfile.Tx) error {
		raw := tx.Bucket([]byte(metadb.MetaBucket)).Get([]byte(metadb.MetaKey))
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &state); err != nil {
			return fmt.Errorf("%w: the list of its pieces: %w", types.ErrCorrupt, err)
		}
		return nil
	})
	return state, err
}

// CommitState stores the state of the log.
func (s *metaStore) CommitState(state types.PersistentState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return s.put(metadb.MetaBucket, []byte(metadb.MetaKey), text)
}

// GetStable returns the value that SetStable stored, nil if there is none.
func (s *metaStore) GetStable(key []byte) (value []byte, err error) {
	err = s.db.View(func(tx *boltfile.Tx) error {
		value = bytes.Clone(tx.Bucket([]byte(metadb.StableBucket)).Get(key))
		return nil
	})
	return value, err
}

// SetStable stores a value, durably.
func (s *metaStore) SetStable(key, value []byte) error { return s.put(metadb.StableBucket, key, value) }

func (s *metaStore) put(bucket string, key, value []byte) error {
	return s.db.Update(func(tx *boltfile.Tx) error {
		if value == nil {
			return tx.Bucket([]byte(bucket)).Delete(key)
		}
		return tx.Bucket([]byte(bucket)).Put(key, value)
	})
}

// Close closes the file.
func (s *metaStore) Close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return err
}
