package erofs

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	library "github.com/erofs/go-erofs"
	"golang.org/x/sys/unix"
)

// sampleTree is a tree with all that a node can be, and sizes about the bounds of blocks.
// It returns the contents of the files by their paths.
func sampleTree(t *testing.T, w *Writer) (root *Node, contents map[string][]byte) {
	t.Helper()
	root, contents = NewDirectory(0o755), map[string][]byte{}
	random := rand.NewChaCha8([32]byte{23})
	add := func(dir *Node, path string, size int) *Node {
		t.Helper()
		data := make([]byte, size)
		random.Read(data)
		block, err := w.WriteData(bytes.NewReader(data), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		n := &Node{Mode: TypeRegular | 0o644, UID: 1000, GID: 70000, Mtime: 1700000000, MtimeNs: 123456789,
			Size: int64(size), Block: block}
		dir.Children[filepath.Base(path)], contents[path] = n, data
		return n
	}
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1<<20 - 1, 3<<20 + 5} {
		add(root, fmt.Sprint("file", size), size)
	}
	many := NewDirectory(0o1777)
	many.Mtime = 5
	root.Children["many"] = many
	for i := range 1000 {
		name := strings.Repeat("n", i%250) + fmt.Sprint(i)
		add(many, "many/"+name, i%7)
	}
	deep := root
	for i := range 40 {
		next := NewDirectory(0o700 + uint16(i))
		deep.Children["deep"], deep = next, next
	}
	special := add(deep, strings.Repeat("deep/", 40)+"setuid", 10)
	special.Mode = TypeRegular | 0o4755
	special.Xattrs = map[string]string{"user.note": "a value", "user.empty": "", "user.bytes": "\x00\xff" +
		strings.Repeat("x", 500)}
	root.Children["link"], many.Children["link2"] = special, special // hard links
	contents["link"], contents["many/link2"] = contents[strings.Repeat("deep/", 40)+"setuid"],
		contents[strings.Repeat("deep/", 40)+"setuid"]
	root.Children["short"] = &Node{Mode: TypeSymlink | 0o777, Target: "/absolute/../file1"}
	root.Children["long"] = &Node{Mode: TypeSymlink | 0o777, Target: strings.Repeat("t", MaxTargetBytes)}
	root.Children["limit"] = &Node{Mode: TypeSymlink | 0o777, Target: strings.Repeat("t", mostInline)}
	root.Children["é.#"] = NewDirectory(0o755)
	root.Children["-"] = NewDirectory(0o755)
	return root, contents
}

func writeSample(t *testing.T) (path string, root *Node, contents map[string][]byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "image")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f)
	root, contents = sampleTree(t, w)
	if err := w.Finish(root); err != nil {
		t.Fatal(err)
	}
	return path, root, contents
}

// TestDeterministic writes one tree twice, and gets the same bytes.
func TestDeterministic(t *testing.T) {
	one, _, _ := writeSample(t)
	two, _, _ := writeSample(t)
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(two)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(a) != sha256.Sum256(b) || len(a)%BlockBytes != 0 {
		t.Errorf("%d and %d bytes, which differ", len(a), len(b))
	}
}

// TestLibrary reads an image with the library of others.
func TestLibrary(t *testing.T) {
	path, root, contents := writeSample(t)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := library.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	compareTree(t, image, root, contents, func(_ string, info fs.FileInfo) fileStat {
		s := info.Sys().(*library.Stat)
		mode := uint16(s.Mode.Perm())
		for flag, bit := range map[fs.FileMode]uint16{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000,
			fs.ModeSticky: 0o1000} {
			if s.Mode&flag != 0 {
				mode |= bit
			}
		}
		return fileStat{mode, s.UID, s.GID, s.Nlink, uint64(s.Ino), s.Xattrs}
	})
}

// fileStat is what the forms of FileInfo do not share.
type fileStat struct {
	mode     uint16
	uid, gid uint32
	links    int
	inode    uint64
	xattrs   map[string]string
}

// compareTree compares a file system with a tree.
func compareTree(t *testing.T, got fs.FS, root *Node, contents map[string][]byte,
	stat func(path string, info fs.FileInfo) fileStat) {
	t.Helper()
	inodes, seen := map[*Node]uint64{}, 0
	var walk func(path string, n *Node)
	walk = func(path string, n *Node) {
		info, err := fs.Lstat(got, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		seen++
		s := stat(path, info)
		links := int(n.links)
		if s.uid != n.UID || s.gid != n.GID || s.links != links || info.Size() != n.Size ||
			s.mode != n.Mode&0o7777 || !info.ModTime().Equal(time.Unix(n.Mtime, int64(n.MtimeNs))) {
			t.Errorf("%s: got %v, %+v, want %+v", path, info, s, n)
		}
		if inodes[n] != 0 && inodes[n] != s.inode {
			t.Errorf("%s: its hard links have inodes %d and %d", path, inodes[n], s.inode)
		}
		inodes[n] = s.inode
		if fmt.Sprint(s.xattrs) != fmt.Sprint(n.Xattrs) && len(s.xattrs)+len(n.Xattrs) > 0 {
			t.Errorf("%s: attributes: got %q, want %q", path, s.xattrs, n.Xattrs)
		}
		switch {
		case n.IsSymlink():
			if target, err := fs.ReadLink(got, path); err != nil || target != n.Target {
				t.Errorf("%s: got the target %q, %v", path, target, err)
			}
		case n.IsRegular():
			if data, err := fs.ReadFile(got, path); err != nil || !bytes.Equal(data, contents[path]) {
				t.Errorf("%s: got %d bytes, %v, want %d", path, len(data), err, len(contents[path]))
			}
		default:
			list, err := fs.ReadDir(got, path)
			if err != nil || len(list) != len(n.Children) {
				t.Errorf("%s: got %d names, %v, want %d", path, len(list), err, len(n.Children))
			}
			for name, c := range n.Children {
				walk(filepath.Join(path, name), c)
			}
		}
	}
	walk(".", root)
	if seen < 1050 {
		t.Errorf("%d files were compared", seen)
	}
}

// TestKernel mounts an image and compares what the kernel sees.
func TestKernel(t *testing.T) {
	path, root, contents := writeSample(t)
	dir := filepath.Join(t.TempDir(), "mount")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mountImage(t, path, dir)
	compareTree(t, os.DirFS(dir), root, contents, func(path string, info fs.FileInfo) fileStat {
		s := info.Sys().(*syscall.Stat_t)
		return fileStat{uint16(s.Mode & 0o7777), s.Uid, s.Gid, int(s.Nlink), s.Ino,
			kernelXattrs(filepath.Join(dir, path))}
	})
}

// kernelXattrs returns the extended attributes of a file, without following a link.
func kernelXattrs(path string) map[string]string {
	buffer := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buffer)
	if err != nil {
		return nil
	}
	all := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimRight(string(buffer[:n]), "\x00"), "\x00") {
		value := make([]byte, 64<<10)
		if n, err := unix.Lgetxattr(path, name, value); err == nil {
			all[name] = string(value[:n])
		}
	}
	return all
}

// mountImage mounts an image as the startd does, or with a loop device on older kernels.
func mountImage(t *testing.T, path, dir string) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "erofs", "-o", "ro", path, dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: EROFS cannot be mounted here: %v: %s; images are not compared with the kernel", err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestFsck has the tools of EROFS check an image.
func TestFsck(t *testing.T) {
	tool, err := exec.LookPath("fsck.erofs")
	if err != nil {
		t.Skip("SKIPPED: fsck.erofs is missing (Debian: erofs-utils); images are not checked with it")
	}
	path, _, _ := writeSample(t)
	if out, err := exec.Command(tool, path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRefused refuses trees that cannot be written.
func TestRefused(t *testing.T) {
	for name, n := range map[string]*Node{
		"a/b": NewDirectory(0), "": NewDirectory(0), "..": NewDirectory(0), "a\x00": NewDirectory(0),
		strings.Repeat("n", 256): NewDirectory(0),
		"device":                 {Mode: 0o020600}, "empty link": {Mode: TypeSymlink},
		"long link": {Mode: TypeSymlink, Target: strings.Repeat("t", 4096)},
		"xattr":     {Mode: TypeRegular, Xattrs: map[string]string{"trusted.overlay.opaque": "y"}},
		"xattrs":    {Mode: TypeRegular, Xattrs: map[string]string{"user.x": strings.Repeat("v", 3000)}},
	} {
		root := NewDirectory(0o755)
		root.Children[name] = n
		f, err := os.Create(filepath.Join(t.TempDir(), "image"))
		if err != nil {
			t.Fatal(err)
		}
		if err := NewWriter(f).Finish(root); err == nil {
			t.Errorf("%q is written", name)
		}
		f.Close()
	}
	w := NewWriter(discardAt{})
	if _, err := w.WriteData(strings.NewReader("short"), 6); err == nil || w.Finish(NewDirectory(0)) == nil {
		t.Errorf("a short file: got %v", err)
	}
}

type discardAt struct{}

func (discardAt) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// BenchmarkWriter writes files of 16 KiB.
func BenchmarkWriter(b *testing.B) {
	const size = 16 << 10
	data := make([]byte, size)
	b.SetBytes(size)
	w, root := NewWriter(discardAt{}), NewDirectory(0o755)
	for i := 0; b.Loop(); i++ {
		block, err := w.WriteData(io.Reader(bytes.NewReader(data)), size)
		if err != nil {
			b.Fatal(err)
		}
		root.Children[fmt.Sprint(i)] = &Node{Mode: TypeRegular, Size: size, Block: block}
	}
	if err := w.Finish(root); err != nil {
		b.Fatal(err)
	}
}
