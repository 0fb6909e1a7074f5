// Package boltfile opens bbolt files whose contents may be damaged by a disk or replaced.
// bbolt trusts its pages: it panics on bad ones, in a goroutine of its own when it opens
// a file, faults on truncated files, and accepts flipped bits as data. So each record has
// a checksum, the file has a seal that counts them, and a mark beside the file has the
// number of the last transaction. A reader that trusts nothing reads everything once
// before bbolt opens the file.
package boltfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/logmark"
)

// lockTimeout is how long an open waits until the previous owner closes the file.
const lockTimeout = 3 * time.Second

// Open opens the file at path, creates a missing one, and calls ready, whose panics
// become errors. A file that another process has open gives roost.Conflict, a damaged one
// a DamageError, which is of kind roost.BadConfig. A file without checksums gets them.
func Open(path string, k ContentKind, ready func(*DB) error) (*DB, error) {
	db := &DB{path: path}
	var s *contentChecksum
	err := CatchFaults(func() (err error) {
		s, err = verifyFile(path, &k)
		return err
	})
	if err == nil && s == nil {
		s = &contentChecksum{format: formatVersion, buckets: map[string]bucketChecksum{}}
		rand.Read(s.id[:])
	}
	if err == nil {
		err = CatchFaults(func() error { return db.open(s, &k, ready) })
	}
	var damage *DamageError
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		err = fmt.Errorf("%s: %w: another daemon has it open", path, roost.Conflict)
	case !errors.As(err, &damage):
		err = fmt.Errorf("%s %s: %w: the file is damaged or cannot be used: %w", k.Description, path,
			roost.BadConfig, err)
	}
	db.Close()
	return nil, err
}

func (db *DB) open(s *contentChecksum, k *ContentKind, ready func(*DB) error) (err error) {
	if db.bolt, err = bolt.Open(db.path, 0o600, boltOptions(k.InitialMap)); err != nil {
		return err
	}
	if db.commitMark, err = logmark.Open(db.path+markSuffix, markMagic); err != nil {
		return err
	}
	db.checksum = s
	whole, err := db.hasAll(k)
	if err == nil && !whole {
		err = db.create(k)
	}
	if err == nil && ready != nil {
		err = ready(db)
	}
	if err == nil { // all of it was read
		err = db.ReleasePages()
	}
	return err
}

// hasAll reports whether all buckets and the mark exist, so that opening the file does
// not change it.
func (db *DB) hasAll(k *ContentKind) (whole bool, err error) {
	m, err := readMark(db.path)
	if err != nil {
		return false, err
	}
	err = db.bolt.View(func(tx *bolt.Tx) error {
		whole = m != nil && m.id == db.checksum.id && m.txid == uint64(tx.ID())
		for _, name := range append([]string{string(bucketChecksums)}, k.Buckets...) {
			whole = whole && tx.Bucket([]byte(name)) != nil
		}
		return nil
	})
	return whole, err
}

// create creates the missing buckets.
func (db *DB) create(k *ContentKind) error {
	return db.Update(func(tx *Tx) error {
		for _, name := range k.Buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

func boltOptions(size int) *bolt.Options {
	return &bolt.Options{Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
		InitialMmapSize: size}
}

// verifyFile reads all of a file, adds missing checksums, and returns its seal. It
// returns nil if there is no file yet.
func verifyFile(path string, k *ContentKind) (*contentChecksum, error) {
	c, last, err := readFile(path, k, nil)
	switch {
	case err != nil || c == nil:
		return nil, err
	case k.checkFormat(c) != nil:
		return nil, k.checkFormat(c)
	case len(c.damages) > 0:
		return nil, &DamageError{path, *k, c.damages}
	case c.checksum == nil && last == nil:
		if err := addChecksums(path, k); err != nil {
			return nil, fmt.Errorf("checksums for its records: %w", err)
		}
		return verifyFile(path, k)
	}
	return c.checksum, nil
}

// readFile reads all of a file, and its mark. The contents list the damages; there are
// none if there is no file yet.
func readFile(path string, k *ContentKind,
	record func(bucket string, key, value []byte)) (*fileContents, *commitMark, error) {
	last, err := readMark(path)
	if err != nil {
		return nil, nil, err
	}
	c := &fileContents{}
	info, err := os.Stat(path)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return nil, nil, err
	case (missing || info.Size() == 0) && last == nil:
		return nil, nil, nil
	case missing || info.Size() == 0:
		c.damages = append(c.damages, DamageFinding{
			Reason: fmt.Sprintf("it is gone or empty, and %d transactions were written to it", last.txid),
		})
		return c, last, nil
	}
	if c, err = examineFile(path, k, record); err != nil {
		return nil, nil, err
	}
	switch {
	case last == nil:
	case c.checksum == nil && len(c.damages) == 0:
		c.damages = append(c.damages, DamageFinding{Reason: "its records have no checksums, and once had"})
	case c.checksum != nil && c.checksum.buckets != nil && c.checksum.id == last.id && c.txid < last.txid:
		c.damages = append(c.damages,
			DamageFinding{Reason: fmt.Sprintf("it is as it was after transaction %d, and the last was %d: what was "+
				"written since is not in it", c.txid, last.txid)})
	}
	return c, last, nil
}

// CatchFaults runs f and returns panics and faults in mapped memory as errors.
func CatchFaults(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}
