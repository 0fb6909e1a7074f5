package containerimage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/store"
)

// openUnpacking opens a cache that unpacks images.
func openUnpacking(t *testing.T, dir string, source Source, maxBytes int64) *Cache {
	t.Helper()
	c, err := Open(Options{Log: slog.New(slog.DiscardHandler), Dir: dir, Source: source, MaxBytes: maxBytes,
		Unpack: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// trees lists what is in the directory of the unpacked images.
func trees(t *testing.T, c *Cache) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(c.mounts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// addTree makes an image of a tree.
func (s *fakeServer) addTree(t *testing.T, fill func(w *erofs.Writer, root *erofs.Node)) store.Digest {
	t.Helper()
	f, err := s.blobs.NewFile()
	if err != nil {
		t.Fatal(err)
	}
	w, root := erofs.NewWriter(f), erofs.NewDirectory(0o755)
	fill(w, root)
	if err := w.Finish(root); err != nil {
		t.Fatal(err)
	}
	manifest, err := s.blobs.AddFile(t.Context(), f, "test")
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Digest()
}

// TestUnpack compares unpacked files with those of the image.
func TestUnpack(t *testing.T) {
	s := newFakeServer(t)
	digest := s.addTree(t, func(w *erofs.Writer, root *erofs.Node) {
		text := func(text string, mode uint16) *erofs.Node {
			block, err := w.WriteData(strings.NewReader(text), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			return &erofs.Node{Mode: erofs.TypeRegular | mode, Size: int64(len(text)), Block: block, UID: 7, GID: 8,
				Mtime: 1_600_000_000, MtimeNs: 5, Xattrs: map[string]string{"user.note": "v"}}
		}
		closed, sticky := erofs.NewDirectory(0o500), erofs.NewDirectory(0o1777)
		closed.Children["run"], closed.Children["secret"] = text("#!/bin/sh\n", 0o4755), text("x", 0)
		closed.Mtime = 1_500_000_000
		root.Children["closed"], root.Children["tmp"] = closed, sticky
		root.Children["hard"] = closed.Children["run"]
		root.Children["out"] = &erofs.Node{Mode: erofs.TypeSymlink | 0o777, Target: "../../../etc"}
		root.Children["empty"] = text("", 0o644)
	})
	c := openUnpacking(t, t.TempDir(), s, 0)
	root, err := c.Acquire(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		line := fmt.Sprint(name, " ", info.Mode())
		if s := info.Sys().(*syscall.Stat_t); !e.IsDir() {
			line += fmt.Sprint(" ", s.Nlink, " ", info.Size())
			if e.Type() == 0 && info.ModTime().UnixNano() != 1_600_000_000_000_000_005 ||
				s.Uid != uint32(os.Geteuid()) {
				t.Errorf("%s: %v, of user %d", name, info.ModTime(), s.Uid)
			}
		}
		got = append(got, line)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{". drwxr-xr-x", "closed dr-x------", "closed/run -rwxr-xr-x 2 10", "closed/secret ---------- 1 1",
		"empty -rw-r--r-- 1 0", "hard -rwxr-xr-x 2 10", "out Lrwxrwxrwx 1 12", "tmp dtrwxrwxrwx"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	value := make([]byte, 10)
	n, err := unix.Getxattr(filepath.Join(root, "hard"), "user.note", value)
	if err == nil && string(value[:n]) != "v" { // not every file system has attributes
		t.Errorf("its attribute is %q", value[:n])
	}
	if err := removeTree(root); err != nil {
		t.Error(err)
	}
}

// TestUnpackedAgain: images stay unpacked for the next process, but what was not complete
// and what has no blob goes.
func TestUnpackedAgain(t *testing.T) {
	s, dir := newFakeServer(t), t.TempDir()
	blue, red := s.addImage(t, "blue", 1000), s.addImage(t, "red", 1000)
	c := openUnpacking(t, dir, s, 0)
	acquire(t, c, blue, "blue")
	acquire(t, c, red, "red")
	if err := c.blobs.Unpin(red, pinOwner); err != nil {
		t.Fatal(err)
	}
	if err := c.blobs.Remove(red); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), os.MkdirAll(filepath.Join(c.mounts, newTree+"x", "y"), 0o755),
		os.MkdirAll(filepath.Join(c.mounts, oldTree+"x", "y"), 0o500)); err != nil {
		t.Fatal(err)
	}
	c = openUnpacking(t, dir, s, 0)
	if err := c.ReleaseUnused(); err != nil {
		t.Fatal(err)
	}
	if got := trees(t, c); len(got) != 1 || "sha256:"+got[0] != string(blue) {
		t.Errorf("got %v, want the tree of %s", got, blue)
	}
	acquire(t, c, blue, "blue")
	if n := s.fetches.Load(); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

// TestUnpackedRoom: images that no task uses make room for others, with their files.
func TestUnpackedRoom(t *testing.T) {
	s := newFakeServer(t)
	blue, red := s.addImage(t, "blue", 3<<20), s.addImage(t, "red", 3<<20)
	c := openUnpacking(t, t.TempDir(), s, 2*(5<<20))
	acquire(t, c, blue, "blue")
	if _, err := c.Acquire(t.Context(), red); !errors.Is(err, roost.Exhausted) {
		t.Errorf("beside an image that is used: got %v", err)
	}
	c.Release(blue)
	acquire(t, c, red, "red")
	if got := trees(t, c); len(got) != 1 || "sha256:"+got[0] != string(red) {
		t.Errorf("got %v, want the tree of %s", got, red)
	}
}

// TestForeignImage refuses what no builder of Roost wrote, before the kernel reads it.
func TestForeignImage(t *testing.T) {
	s := newFakeServer(t)
	manifest, err := s.blobs.Add(t.Context(), strings.NewReader(strings.Repeat("another file system", 1000)), "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Cache{"mounted": open(t, t.TempDir(), s, 0),
		"unpacked": openUnpacking(t, t.TempDir(), s, 0)} {
		if _, err := c.Acquire(t.Context(), manifest.Digest()); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
		if got := trees(t, c); len(got) != 0 {
			t.Errorf("%s: %v are left", name, got)
		}
	}
}
