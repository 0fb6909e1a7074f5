package kernfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/kernfs"
)

// TestOpenFiles reads a file that changes, one that is longer than a page, and one that
// is not there. After Close the files are still readable, and none stays open.
func TestOpenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	var files kernfs.OpenFiles
	read := func() (got string) {
		t.Helper()
		if err := files.Read(path, func(text []byte) { got = string(text) }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if err := files.Read(path, func([]byte) {}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a missing file: got %v", err)
	}
	for _, text := range []string{"", "1", strings.Repeat("0123456789", 2000), "2"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != text {
			t.Errorf("got %d bytes, want %d", len(got), len(text))
		}
	}
	if n := openDescriptors(t, path); n != 1 {
		t.Errorf("%d descriptors are open, want 1", n)
	}
	files.Close()
	if got := read(); got != "2" {
		t.Errorf("after Close: got %q", got)
	}
	if n := openDescriptors(t, path); n != 0 {
		t.Errorf("after Close %d descriptors are open", n)
	}
}

// openDescriptors counts this process's descriptors of a file.
func openDescriptors(t *testing.T, path string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == path {
			n++
		}
	}
	return n
}
