package boltfile

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/roost-batch/roost"
)

// TestFormat raises the format of a file. A program that does not know the format refuses
// the file, and does not call it damaged; a flipped bit in the format is damage.
func TestFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	write(t, path)
	later := kind
	later.Format = 3
	open := func(k ContentKind) (format uint64, err error) {
		db, err := Open(path, k, nil)
		if err != nil {
			return 0, err
		}
		defer db.Close()
		return db.Format(), nil
	}
	if format, err := open(later); format != formatVersion || err != nil {
		t.Fatalf("got format %d, %v", format, err)
	}
	db, err := Open(path, later, func(db *DB) error {
		return db.Update(func(tx *Tx) error { tx.SetFormat(3); return nil })
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if format, err := open(later); format != 3 || err != nil {
		t.Fatalf("got format %d, %v", format, err)
	}
	var damage *DamageError
	if _, err := open(kind); !errors.Is(err, roost.BadConfig) || errors.As(err, &damage) ||
		!strings.Contains(err.Error(), "its format is 3, and this program knows 2") {
		t.Errorf("got %v", err)
	}
	if d, err := InspectFile(path, kind, nil); d != nil || err == nil {
		t.Errorf("it is called damaged: %v, %v", d, err)
	}
	raw, err := Open(path, later, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(raw.bolt.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyFormat, bigEndian(3|1<<20))
	}), raw.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(later); !errors.As(err, &damage) || !strings.Contains(err.Error(), "should be 3") {
		t.Errorf("got %v", err)
	}
}
