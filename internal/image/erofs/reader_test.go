package erofs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/roost-batch/roost"
)

// TestWalk visits what was written: all files, with all that they have.
func TestWalk(t *testing.T) {
	path, root, contents := writeSample(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Node{".": root}
	var collect func(n *Node, path string)
	collect = func(n *Node, path string) {
		for name, c := range n.Children {
			want[path+name] = c
			collect(c, path+name+"/")
		}
	}
	collect(root, "")
	inodes := map[uint64]*Node{}
	err = Walk(bytes.NewReader(data), int64(len(data)), func(f File) error {
		w := want[f.Path]
		if w == nil {
			t.Errorf("%s is visited, and is not there, or was before", f.Path)
			return nil
		}
		delete(want, f.Path)
		n := f.Node
		if n.Mode != w.Mode || n.UID != w.UID || n.GID != w.GID || n.Mtime != w.Mtime || n.MtimeNs != w.MtimeNs ||
			n.Target != w.Target || n.Size != w.Size || f.Links != w.links ||
			fmt.Sprint(n.Xattrs) != fmt.Sprint(w.Xattrs) {
			t.Errorf("%s: got %+v, want %+v", f.Path, n, w)
		}
		if old := inodes[f.Inode]; old != nil && old != w {
			t.Errorf("%s: its inode is another file's", f.Path)
		}
		inodes[f.Inode] = w
		if n.IsRegular() {
			if text, err := io.ReadAll(f.Contents()); err != nil || !bytes.Equal(text, contents[f.Path]) {
				t.Errorf("%s: got %d bytes, %v, want %d", f.Path, len(text), err, len(contents[f.Path]))
			}
		}
		return nil
	})
	if err != nil || len(want) > 0 {
		t.Errorf("%v; %d files were not visited", err, len(want))
	}
}

// smallImage is an image with a few files.
func smallImage(t testing.TB) []byte {
	t.Helper()
	f := &memoryFile{}
	w := NewWriter(f)
	root, dir := NewDirectory(0o755), NewDirectory(0o755)
	block, err := w.WriteData(bytes.NewReader([]byte("text")), 4)
	if err != nil {
		t.Fatal(err)
	}
	file := &Node{Mode: TypeRegular | 0o644, Size: 4, Block: block, Xattrs: map[string]string{"user.a": "b"}}
	root.Children["dir"], dir.Children["file"], root.Children["hard"] = dir, file, file
	root.Children["link"] = &Node{Mode: TypeSymlink | 0o777, Target: "dir/file"}
	if err := w.Finish(root); err != nil {
		t.Fatal(err)
	}
	return f.data
}

// memoryFile is a file in memory.
type memoryFile struct{ data []byte }

func (m *memoryFile) WriteAt(b []byte, at int64) (int, error) {
	if need := int(at) + len(b); need > len(m.data) {
		m.data = append(m.data, make([]byte, need-len(m.data))...)
	}
	return copy(m.data[at:], b), nil
}

func walkAll(b []byte) (paths []string, err error) {
	err = Walk(bytes.NewReader(b), int64(len(b)), func(f File) error {
		paths = append(paths, f.Path)
		if f.Node.IsRegular() {
			if _, err := io.Copy(io.Discard, f.Contents()); err != nil {
				return err
			}
		}
		return nil
	})
	return paths, err
}

// TestWalkHostile refuses images that no Writer wrote.
func TestWalkHostile(t *testing.T) {
	good := smallImage(t)
	if paths, err := walkAll(good); err != nil || fmt.Sprint(paths) != "[. dir dir/file hard link]" {
		t.Fatalf("got %v, %v", paths, err)
	}
	inodes := int(binary.LittleEndian.Uint32(good[superOffset+40:])) * BlockBytes
	root := inodes + int(binary.LittleEndian.Uint16(good[superOffset+14:]))*slotBytes
	for name, c := range map[string]struct {
		at    int
		value any
	}{
		"the magic number": {superOffset, uint32(1)}, "a feature": {superOffset + 80, uint32(1)},
		"before the superblock": {10, byte(1)}, "a compact inode": {root, uint16(0)},
		"a device": {root + 4, uint16(0o020644)}, "a root that is a file": {root + 4, uint16(TypeRegular | 0o644)},
		"a large directory": {root + 8, uint64(1 << 40)}, "a negative size": {root + 8, ^uint64(0)},
		"many attributes": {root + 2, uint16(60000)}, "a chunk format": {root, uint16(1 | 4<<1)},
		"a reserved field": {root + 60, uint32(1)}, "an inode far away": {root + inodeBytes, uint64(1 << 50)},
		"another directory for itself": {root + inodeBytes, uint64(5)},
		"a name far away":              {root + inodeBytes + 8, uint16(9999)},
		"a kind of file":               {root + inodeBytes + 3*direntBytes + 10, byte(direntDirectory)},
	} {
		b := bytes.Clone(good)
		if _, err := binary.Encode(b[c.at:], binary.LittleEndian, c.value); err != nil {
			t.Fatal(err)
		}
		if paths, err := walkAll(b); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %v, %v, want it refused", name, paths, err)
		}
	}
	for _, b := range [][]byte{nil, good[:BlockBytes], good[:len(good)-1], append(bytes.Clone(good), 0)} {
		if _, err := walkAll(b); !errors.Is(err, roost.Invalid) {
			t.Errorf("%d of %d bytes: got %v, want it refused", len(b), len(good), err)
		}
	}
}

// TestWalkDamage changes bytes at random. Whatever is read then is refused or read.
func TestWalkDamage(t *testing.T) {
	good := smallImage(t)
	inodes := int(binary.LittleEndian.Uint32(good[superOffset+40:])) * BlockBytes
	random := rand.New(rand.NewPCG(23, 1))
	for range 20_000 {
		b := bytes.Clone(good)
		for range 1 + random.IntN(4) {
			b[inodes+random.IntN(600)] = byte(random.Uint32())
		}
		if paths, err := walkAll(b); len(paths) > 100 || err != nil && !errors.Is(err, roost.Invalid) &&
			!errors.Is(err, roost.Exhausted) {
			t.Fatalf("%d paths, %v", len(paths), err)
		}
	}
}
