// Package dbfile opens bbolt files whose contents a daemon must not trust: a disk may have damaged them, or somebody may have put something else
// there. bbolt trusts its pages: it panics over bad ones, in a goroutine of its own when it opens a file, and faults where a file has lost its
// end. So a file is read through once, guarded, before bbolt has its way with it.
package dbfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/roost-batch/roost"
)

// patience is how long an open waits for the owner before to let go of the file.
const patience = 3 * time.Second

// Open opens the file at path, which need not be there, and calls ready, where panics are errors too. Space is mapped for a file of that many
// bytes from the start. A file that another process has open gives roost.Conflict, a damaged one roost.BadConfig.
func Open(path string, size int, ready func(*bolt.DB) error) (*bolt.DB, error) {
	var db *bolt.DB
	err := examine(path)
	if err == nil {
		err = Guard(func() (err error) {
			db, err = bolt.Open(path, 0o600, &bolt.Options{
				Timeout: patience, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: size,
			})
			if err == nil {
				err = ready(db)
			}
			return err
		})
	}
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s: %w: another daemon has it open", path, roost.Conflict)
	}
	if db != nil {
		db.Close()
	}
	return nil, fmt.Errorf("%s: %w: the file is damaged or cannot be used: %w", path, roost.BadConfig, err)
}

// examine reads all of a file, if it is there.
func examine(path string) error {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return Guard(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: patience, ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			if info, err := os.Stat(path); err != nil || info.Size() < tx.Size() {
				return fmt.Errorf("it has lost its end: %d bytes should be there", tx.Size())
			}
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return walk(b) })
		})
	})
}

// lookUp is after how many keys one is looked up, so that the pages above it are read as well.
const lookUp = 16

// walk touches every key and value of a bucket, and sees that they are in order.
func walk(b *bolt.Bucket) error {
	var before []byte
	n, sum := 0, byte(0)
	return b.ForEach(func(k, v []byte) error {
		if n > 0 && bytes.Compare(before, k) >= 0 {
			return fmt.Errorf("key %x comes after %x", k, before)
		}
		for _, c := range v {
			sum ^= c // read, so that a page that is not there faults here
		}
		if n++; n%lookUp == 0 && !bytes.Equal(b.Get(k), v) {
			return fmt.Errorf("key %x is not found where it stands", k)
		}
		before = append(before[:0], k...)
		return nil
	})
}

// Guard runs f and turns its panics into errors, and its faults in mapped memory.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}
