package replica

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/checksum"
)

// snapshotStore stores snapshots in files. A failed write ends the daemon, like a failed
// write of the log.
type snapshotStore struct {
	raft.SnapshotStore
	dir       string // of the replica
	onFailure func(error)
}

func (s snapshotStore) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64,
	t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		s.onFailure(fmt.Errorf("write a snapshot: %w", err))
		return nil, err
	}
	return watchedSink{sink, s.dir, s.onFailure}, nil
}

type watchedSink struct {
	raft.SnapshotSink
	dir       string
	onFailure func(error)
}

func (w watchedSink) Write(p []byte) (int, error) {
	n, err := w.SnapshotSink.Write(p)
	if err != nil {
		w.onFailure(fmt.Errorf("write a snapshot: %w", err))
	}
	return n, err
}

func (w watchedSink) Close() error {
	err := w.SnapshotSink.Close()
	if err == nil {
		err = writeSnapshotSum(w.dir, w.ID())
	}
	if err != nil {
		w.onFailure(fmt.Errorf("write a snapshot: %w", err))
	}
	return err
}

// The names of a snapshot's files, below the directory of snapshots. Raft stores a
// checksum of the state in the first, and none of the first itself.
const (
	snapshotsDir = "snapshots"
	snapshotMeta = "meta.json"
	snapshotSum  = "meta.sum"
)

func snapshotFile(dir, id, name string) string { return filepath.Join(dir, snapshotsDir, id, name) }

// writeSnapshotSum writes a checksum over a snapshot's metadata and its name.
func writeSnapshotSum(dir, id string) error {
	text, err := os.ReadFile(snapshotFile(dir, id, snapshotMeta))
	if err != nil {
		return err
	}
	return atomicfile.WriteDurable(snapshotFile(dir, id, snapshotSum), []byte(snapshotMetaSum(id, text)), 0o600)
}

func snapshotMetaSum(id string, text []byte) string {
	sum := checksum.Of([]byte(id), []byte{0}, text)
	return hex.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}) + "\n"
}

// checkSnapshots reads all snapshots of the replica in dir, and returns the names of
// damaged ones. Snapshots of an older release get a checksum.
func (s snapshotStore) checkSnapshots() (damaged []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, snapshotsDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id := e.Name()
		if !e.IsDir() || filepath.Ext(id) == ".tmp" {
			continue
		}
		if err := s.checkSnapshot(id); err != nil {
			damaged = append(damaged, fmt.Sprintf("snapshot %s: %v", id, err))
		}
	}
	return damaged, nil
}

func (s snapshotStore) checkSnapshot(id string) error {
	text, err := os.ReadFile(snapshotFile(s.dir, id, snapshotMeta))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(snapshotFile(s.dir, id, snapshotSum))
	older := errors.Is(err, fs.ErrNotExist)
	if err != nil && !older {
		return err
	}
	if !older && string(sum) != snapshotMetaSum(id, text) {
		return fmt.Errorf("what it says of itself: %w", errDamaged)
	}
	_, state, err := s.Open(id)
	if err != nil {
		return fmt.Errorf("its state: %w", err)
	}
	if _, err := io.Copy(io.Discard, state); err != nil {
		return errors.Join(err, state.Close())
	}
	if err := state.Close(); err != nil || !older {
		return err
	}
	return writeSnapshotSum(s.dir, id)
}
