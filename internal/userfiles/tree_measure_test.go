package userfiles

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestMeasure(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	write := func(name string, kilobytes int) {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, kilobytes<<10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("small", 4)
	write("big/a", 256)
	write("big/b/c", 256)
	write("middle", 128)
	write("least", 1)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Link(base+"/middle", base+"/again"), os.Symlink(outside, base+"/link"),
		os.Truncate(base+"/least", 1<<30)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Measure(t.Context(), base, 100)
	used, largest, whole := got.DiskUsed, got.Largest, got.Complete
	if err != nil || !whole {
		t.Fatalf("%v, whole %v", err, whole)
	}
	if used < 640<<10 || used > 800<<10 {
		t.Errorf("used: got %d KiB, want some 645", used>>10)
	}
	if len(largest) != 3 || largest[0].Name != "big" || largest[1].Name != "again" && largest[1].Name != "middle" {
		t.Errorf("largest: got %+v", largest)
	}
	if _, err := a.Measure(t.Context(), base+"/none", 100); err == nil {
		t.Error("a directory that is not there: no error")
	}
}

// TestMeasureEmptyFiles checks that empty files count, and that their number is bounded.
func TestMeasureEmptyFiles(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(base, strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Measure(t.Context(), base, 1000); err != nil || !got.Complete || got.Files != 300 ||
		got.DiskUsed != 300*4096 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := a.Measure(t.Context(), base, 100); err != nil || got.Complete || got.Files != 101 {
		t.Errorf("with a bound of 100: got %+v, %v", got, err)
	}
}
