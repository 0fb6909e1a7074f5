package squashfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// sample is a file system that mksquashfs made without compression (testdata/README).
func sample(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/plain.sqsh")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noDecompressor refuses compressed blocks.
func noDecompressor(Compression) (Decompressor, error) {
	return func([]byte, []byte, int) ([]byte, error) { return nil, errors.New("compressed") }, nil
}

// list reads all of a file system, but each directory once, and at most 1,000 files.
func list(data []byte) (lines []string, err error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)), noDecompressor)
	if err != nil {
		return nil, err
	}
	root, err := f.Root()
	if err != nil {
		return nil, err
	}
	seen := map[Ref]bool{}
	var walk func(dir *Inode, path string) error
	walk = func(dir *Inode, path string) error {
		entries, err := f.ReadDirectory(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			n, err := f.Inode(e.Ref)
			if err != nil {
				return err
			}
			line := path + e.Name
			switch {
			case len(lines) == 1000:
				return nil
			case n.Type == Directory:
				if !seen[e.Ref] {
					seen[e.Ref] = true
					if err := walk(n, line+"/"); err != nil {
						return err
					}
				}
				line += "/"
			case n.Type == Regular:
				r, err := f.Contents(n)
				if err != nil {
					return err
				}
				text, err := io.ReadAll(io.LimitReader(r, 1<<20))
				if err != nil {
					return err
				}
				line += "=" + string(text[:min(len(text), 4)])
			case n.Type == Symlink:
				line += ">" + n.Target
			}
			for name, value := range n.Xattrs {
				line += " " + name + "=" + value
			}
			lines = append(lines, line)
		}
		return nil
	}
	return lines, walk(root, "")
}

// TestSample lists the sample.
func TestSample(t *testing.T) {
	lines, err := list(sample(t))
	want := "a/b/file=text user.note=value, a/b/, a/hard=text user.note=value, a/large=xxxx, a/, link>a/b/file"
	if got := strings.Join(lines, ", "); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestWrong refuses file systems that are cut, or of another kind.
func TestWrong(t *testing.T) {
	good := sample(t)
	change := func(at int, v any) []byte {
		b := slices.Clone(good)
		if _, err := binary.Encode(b[at:], binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "a cut superblock": good[:50], "cut": good[:len(good)/2], "magic": change(0, uint32(1)),
		"version": change(28, uint16(3)), "block size": change(12, uint32(1<<30)), "block log": change(22, uint16(30)),
		"no owners": change(26, uint16(0)), "many owners": change(26, uint16(60000)), "root": change(32, uint64(1<<40)),
		"a root that is a file": change(32, uint64(0)), "owners far away": change(48, uint64(1<<63)),
		"no attributes": change(56, uint64(noTable)), "inodes far away": change(64, uint64(1<<62)),
		"directories far away": change(72, ^uint64(0)), "no fragments": change(16, uint32(0)),
		"fragments far away": change(80, uint64(1<<63-1)),
	} {
		if lines, err := list(b); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %q, %v, want it refused", name, lines, err)
		}
	}
}

// FuzzSquashFS has any bytes be a file system. It is read or refused.
func FuzzSquashFS(f *testing.F) {
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, err := list(b)
		if err != nil && !errors.Is(err, roost.Invalid) && !errors.Is(err, roost.Exhausted) {
			t.Fatalf("%q: %v", lines, err)
		}
	})
}
