package sealing

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
)

// TestKeyStore seals values over two rotations. A value opens only as what it was sealed
// as, with a key that is still there; the file is for its owner only.
func TestKeyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	s, err := Open(path)
	if err != nil || s.Current() != "" {
		t.Fatal(s.Current(), err)
	}
	now := time.Unix(1000, 0)
	if err := s.NewKey(now); err != nil {
		t.Fatal(err)
	}
	first := s.Current()
	id, sealed, err := s.Seal([]byte("tell nobody"), "db of ann")
	if err != nil || id != first || bytes.Contains(sealed, []byte("tell")) {
		t.Fatal(id, sealed, err)
	}
	if _, again, _ := s.Seal([]byte("tell nobody"), "db of ann"); bytes.Equal(again, sealed) {
		t.Error("the same value is sealed to the same bytes")
	}
	if err := s.NewKey(now); err != nil || s.Current() == first { // also by a clock that stands still
		t.Fatal(s.Current(), err)
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Unseal(first, sealed, "db of ann"); err != nil || string(got) != "tell nobody" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.Unseal(first, sealed, "db of bob"); !errors.Is(err, roost.Internal) {
		t.Errorf("as another's: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	other, _ := Open(filepath.Join(t.TempDir(), "keys"))
	forged := Key{ID: "0000000000000000", Made: 1, Key: make([]byte, keySize)}
	if err := other.Add(append(s.Keys(), forged)); err != nil {
		t.Fatal(err)
	}
	if other.Current() != s.Current() || len(other.Keys()) != 2 {
		t.Errorf("another has %d keys", len(other.Keys()))
	}
	if err := s.Retain(func(string) bool { return false }); err != nil || s.Has(first) || len(s.Keys()) != 1 {
		t.Error(s.Keys(), err)
	}
	if _, err := s.Unseal(first, sealed, "db of ann"); !errors.Is(err, roost.NotFound) {
		t.Errorf("with a key that is gone: %v", err)
	}
}

// TestDamage damages a file of keys in many ways. What is read is what was written, or
// the damage is named.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.NewKey(time.Unix(1000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	noticed := 0
	damage.ForEach(t, path, 300, func(what string) {
		got, err := Open(path)
		if err != nil {
			if !errors.Is(err, roost.NoInput) {
				t.Fatalf("%s: %v", what, err)
			}
			noticed++
			return
		}
		for _, k := range got.Keys() {
			if !s.Has(k.ID) || k.check() != nil {
				t.Fatalf("%s: it has a key that was never made", what)
			}
		}
	})
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
}
