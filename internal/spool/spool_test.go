package spool

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage damages a file in many ways. Its values must be read as written, or an error
// must name the file, and the rest must be delivered.
func TestDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notices")
	s, _, err := Open[string](dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []*Entry[string]
	for _, id := range []string{"1.h", "2.h", "3.h"} {
		queued, err := s.Write([]string{id})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, queued...)
	}
	path, refused := s.Path(2), 0
	damage.ForEach(t, path, 100, func(what string) {
		_, got, err := Open[string](dir)
		switch {
		case err == nil && reflect.DeepEqual(got, want):
		case err != nil && strings.Contains(err.Error(), path) &&
			reflect.DeepEqual(got, []*Entry[string]{want[0], want[2]}):
			refused++
		default:
			t.Fatalf("%s: %d letters, %v", what, len(got), err)
		}
	})
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// TestDelivered checks that a batch is deleted when all of it is delivered, and is read
// again until then.
func TestDelivered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, _, err := Open[string](dir)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := s.Write([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for i, left := range []int{2, 0} {
		batch[i].Delivered()
		if _, got, err := Open[string](dir); err != nil || len(got) != left {
			t.Errorf("after %d of 2: %d are left, want %d: %v", i+1, len(got), left, err)
		}
	}
}
