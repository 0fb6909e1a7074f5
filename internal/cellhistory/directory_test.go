package cellhistory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
)

// TestDirectory writes checkpoints, reads them, and has the old ones removed.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "checkpoints")
	if all, err := List(dir); err != nil || len(all) != 0 {
		t.Fatalf("of a directory that is not there: %v, %v", all, err)
	}
	begin := time.Date(2026, 11, 28, 14, 0, 0, 987, time.UTC)
	for i := range 5 {
		at := begin.Add(time.Duration(i) * time.Hour)
		if err := Write(dir, at, []byte(Name(at)), 150*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes.txt", "20261128.cell", "20261128T140000Z.cell.new"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(dir)
	if err != nil || len(all) != 3 || Name(all[0]) != "20261128T160000Z" || Name(all[2]) != "20261128T180000Z" {
		t.Fatalf("%v, %v", all, err)
	}
	for _, at := range all {
		if text, err := Read(dir, at); err != nil || string(text) != Name(at) {
			t.Errorf("%v: %q, %v", at, text, err)
		}
	}
	if _, err := Read(dir, begin); !errors.Is(err, roost.NotFound) {
		t.Errorf("one that was removed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("another file: %v", err)
	}
	file := filepath.Join(dir, "notes.txt")
	if err := Write(file, begin, nil, 0); !errors.Is(err, roost.NoOutput) {
		t.Errorf("into a file: %v", err)
	}
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 28, 15, 4, 5, 0, time.FixedZone("X", 3600))
	if got, ok := ParseName(Name(at)); !ok || !got.Equal(at) || Name(at) != "20261128T140405Z" {
		t.Errorf("%q is %v, %v", Name(at), got, ok)
	}
	for _, name := range []string{"", "..", "../x", "20261128T140405Z/", "20261128T140405", "20261328T140405Z",
		"+0261128T140405Z", "20261128T140405Z\x00", strings.Repeat("9", 1000)} {
		if at, ok := ParseName(name); ok {
			t.Errorf("%q is the instant %v", name, at)
		}
	}
}

// TestPresence checks that a past desktop does not say whether somebody was at it.
func TestPresence(t *testing.T) {
	n := NodeOf(document.Node{Name: "d1", Load: 3, Owner: "input 3 s ago"}, true)
	if n.Load != 0 || strings.Contains(n.Owner, "3 s") || !n.Desktop {
		t.Errorf("got %+v", n)
	}
	if n := NodeOf(document.Node{Name: "n1", Load: 3}, false); n.Load != 3 || n.Desktop {
		t.Errorf("got %+v", n)
	}
}
