package boltfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// batchBytes is the number of bytes written in one transaction while a file is rebuilt.
const batchBytes = 8 << 20

// ReplacementWriter writes the records of a file that replaces another.
type ReplacementWriter struct {
	db      *DB
	pending []pendingRecord
	bytes   int
	err     error
}

type pendingRecord struct {
	bucket     string
	key, value []byte
}

// Put writes a record. Errors are returned when the file is finished.
func (w *ReplacementWriter) Put(bucket string, key, value []byte) {
	w.pending = append(w.pending, pendingRecord{bucket, bytes.Clone(key), bytes.Clone(value)})
	if w.bytes += len(key) + len(value) + 64; w.bytes > batchBytes {
		w.flush()
	}
}

func (w *ReplacementWriter) flush() {
	if w.err == nil {
		w.err = w.db.Update(func(tx *Tx) error {
			for _, r := range w.pending {
				if err := tx.Bucket([]byte(r.bucket)).Put(r.key, r.value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	w.pending, w.bytes = w.pending[:0], 0
}

// addChecksums adds checksums to the records of a file.
func addChecksums(path string, k *ContentKind) error {
	return rebuildFile(path, k, formatVersion, func(w *ReplacementWriter) error {
		_, err := examineFile(path, k, w.Put)
		return err
	})
}

// rebuildFile creates a new file with the records that fill writes, and renames it over
// the old one.
func rebuildFile(path string, k *ContentKind, format uint64, fill func(*ReplacementWriter) error) error {
	next := path + ".new"
	os.Remove(next)
	os.Remove(next + markSuffix)
	s := &contentChecksum{format: format, buckets: map[string]bucketChecksum{}}
	rand.Read(s.id[:])
	db := &DB{path: next}
	err := db.open(s, k, nil)
	if err == nil {
		db.bolt.NoSync = true
		w := &ReplacementWriter{db: db}
		err = fill(w)
		w.flush()
		err = errors.Join(err, w.err)
	}
	if err == nil {
		err = db.bolt.Sync()
	}
	err = errors.Join(err, db.Close())
	os.Remove(next + markSuffix)
	if err != nil {
		os.Remove(next)
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// InspectFile reads all of a file that no daemon has open, and returns its damages. The
// result is nil if it is intact or does not exist. record is called with each intact
// record, in the present format.
func InspectFile(path string, k ContentKind, record func(bucket string, key, value []byte)) (*DamageError, error) {
	var c *fileContents
	err := CatchFaults(func() (err error) {
		c, _, err = readFile(path, &k, record)
		return errors.Join(err, k.checkFormat(c))
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s: %w: a daemon has it open: stop it first", path, roost.Conflict)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case c == nil || len(c.damages) == 0:
		return nil, nil
	}
	return &DamageError{path, k, c.damages}, nil
}

// ReplaceDamaged replaces a damaged file by one with the records that fill writes, in the
// newest format of its kind. It returns the path of the damaged file, which stays beside
// it with the date in its name; "" if there was none.
func ReplaceDamaged(path string, k ContentKind, now time.Time,
	fill func(*ReplacementWriter) error) (aside string, err error) {
	if _, err := os.Stat(path); err == nil {
		aside = Aside(path, now)
		if err := os.Link(path, aside); err != nil {
			return "", err
		}
	}
	return aside, CatchFaults(func() error { return rebuildFile(path, &k, k.newestFormat(), fill) })
}

// Aside returns the name that ReplaceDamaged gives to the damaged file.
func Aside(path string, now time.Time) string {
	return path + ".damaged-" + now.Format("20060102-150405")
}
