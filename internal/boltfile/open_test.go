package boltfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

var kind = ContentKind{Description: "file", Buckets: []string{"b"}}

// write makes a file with some pages of keys and values.
func write(t testing.TB, path string) {
	t.Helper()
	db, err := Open(path, kind, func(db *DB) error {
		return db.Update(func(tx *Tx) (err error) {
			b := tx.Bucket([]byte("b"))
			for i := 0; err == nil && i < 2000; i++ {
				err = b.Put(fmt.Appendf(nil, "%08d", i), make([]byte, 40))
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

// TestEveryPageDamaged overwrites each page of a file in turn. Opening it gives an error
// of the right kind, or the file: never a panic.
func TestEveryPageDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	write(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fill := range []byte{0, 0xff} {
		for at := 0; at < len(whole); at += os.Getpagesize() {
			b := append([]byte(nil), whole...)
			for i := at; i < at+os.Getpagesize(); i++ {
				b[i] = fill
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := Open(path, kind, func(*DB) error { return nil })
			if err == nil {
				db.Close()
			} else if !errors.Is(err, roost.BadConfig) {
				t.Errorf("page at %d: %v", at, err)
			}
		}
	}
}

// TestReadyFails checks that an error or a panic of ready is an error of Open. The file
// is closed then.
func TestReadyFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	cause := errors.New("cause")
	if _, err := Open(path, kind, func(*DB) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(path, kind, func(*DB) error { panic("p") }); !errors.Is(err, roost.BadConfig) {
		t.Errorf("got %v", err)
	}
	write(t, path)
}

// TestReleasePages checks that a file whose pages were released is read and written as
// before.
func TestReleasePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	want := fill(t, path)
	db, err := Open(path, manyKeys, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for round := range 20 {
		if err := db.ReleasePages(); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("after ", round)
		value := strings.Repeat(key, 10_000)
		want["large/"+key] = value
		if err := db.Update(func(tx *Tx) error {
			return tx.Bucket([]byte("large")).Put([]byte(key), []byte(value))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.ReleasePages(); err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *Tx) error {
		for name, value := range want {
			bucket, key, _ := strings.Cut(name, "/")
			if got := tx.Bucket([]byte(bucket)).Get([]byte(key)); string(got) != value {
				return fmt.Errorf("%s: got %d bytes, want %d", name, len(got), len(value))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
