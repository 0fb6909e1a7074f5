package userfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

func TestExpand(t *testing.T) {
	base, other := t.TempDir(), t.TempDir()
	writeTree(t, base, map[string]string{"a.txt": "a", "b.txt": "bb", "sub/c.txt": "ccc", "sub/deep/d": "d",
		"empty/": "", "odd[1].txt": "o", "sub/z/": ""})
	writeTree(t, other, map[string]string{"far.dat": "far", "dir/x": "x"})
	for link, to := range map[string]string{"link": "a.txt", "sub/skipped": "/etc/passwd", "linkdir": "sub"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(base, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, ownCredential())
	for _, test := range []struct {
		patterns []string
		want     string // names, directories with a slash; or the error's kind
		kind     roost.ErrorKind
	}{
		{patterns: []string{"a.txt"}, want: "a.txt"},
		{patterns: []string{"*.txt", "a.txt"}, want: "a.txt b.txt odd[1].txt"},
		{patterns: []string{"odd[1].txt"}, want: "odd[1].txt"},
		{patterns: []string{"sub"}, want: "sub/ sub/c.txt sub/deep/ sub/deep/d sub/z/"},
		{patterns: []string{"s?b/*.txt"}, want: "sub/c.txt"},
		{patterns: []string{"empty/"}, want: "empty/"},
		{patterns: []string{"link"}, want: "link"},
		{patterns: []string{"linkdir"}, want: "linkdir/ linkdir/c.txt linkdir/deep/ linkdir/deep/d linkdir/z/"},
		{patterns: []string{"none*"}, want: ""},
		{patterns: []string{filepath.Join(other, "far.dat")}, want: "far.dat"},
		{patterns: []string{filepath.Join(other, "dir")}, want: "dir/ dir/x"},
		{patterns: []string{"../" + filepath.Base(other) + "/far.dat"}, want: "far.dat"},
		{patterns: []string{"a.txt => in/renamed"}, want: "in/renamed"},
		{patterns: []string{"?.txt => in"}, want: "in/a.txt in/b.txt"},
		{patterns: []string{"missing"}, kind: roost.NoInput},
		{patterns: []string{"fifo"}, kind: roost.NoInput},
		{patterns: []string{"[z"}, kind: roost.Invalid},
		{patterns: []string{"a.txt => ../up"}, kind: roost.Invalid},
		{patterns: []string{"a.txt => /etc/x"}, kind: roost.Invalid},
	} {
		entries, err := a.Expand(t.Context(), base, test.patterns)
		if test.kind != 0 {
			if !errors.Is(err, test.kind) {
				t.Errorf("%q: got %v, want %v", test.patterns, err, test.kind)
			}
			continue
		}
		var names []string
		for _, e := range entries {
			if e.Dir {
				e.Name += "/"
			}
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != test.want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", test.patterns, got, err, test.want)
		}
	}
}

// TestNamesThatCannotTravel checks that a file whose name cannot be in a message is left
// out. All others are sent.
func TestNamesThatCannotTravel(t *testing.T) {
	base := t.TempDir()
	writeTree(t, base, map[string]string{"good": "g", "sub/good": "g"})
	for _, name := range []string{"latin\xe9", "bell\a", "sub/line\nbreak", "sub/\xff"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(base, "sub", "d\xff", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, ownCredential())
	top, err := a.Snapshot(t.Context(), base)
	if err != nil || names(top) != "good sub/" {
		t.Errorf("got %q, %v", names(top), err)
	}
	all, err := a.Expand(t.Context(), base, []string{"sub"})
	if err != nil || names(all) != "sub/ sub/good" {
		t.Errorf("got %q, %v", names(all), err)
	}
}

func names(entries []TransferEntry) string {
	var list []string
	for _, e := range entries {
		if e.Dir {
			e.Name += "/"
		}
		list = append(list, e.Name)
	}
	return strings.Join(list, " ")
}

func TestHugeCounts(t *testing.T) {
	base := t.TempDir()
	const count = 5*pageSize + 1
	for n := range count {
		if err := os.WriteFile(fmt.Sprintf("%s/%06d", base, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := startAgent(t, ownCredential())
	for name, list := range map[string]func() ([]TransferEntry, error){
		"Expand":   func() ([]TransferEntry, error) { return a.Expand(t.Context(), base, []string{"*"}) },
		"Snapshot": func() ([]TransferEntry, error) { return a.Snapshot(t.Context(), base) },
	} {
		entries, err := list()
		if err != nil || len(entries) != count || entries[count-1].Name != fmt.Sprintf("%06d", count-1) {
			t.Errorf("%s: got %d entries, %v, want %d", name, len(entries), err, count)
		}
	}
}
