package userfiles

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// treePacker walks a tree and writes it.
type treePacker struct {
	base   string
	tar    *tar.Writer
	limit  int64
	count  TreeCount
	links  map[[2]uint64]string // inodes with several names, and the first of these
	filter *packFilter          // nil: everything
}

func packTree(dir string, limit int64, patterns []string, w io.Writer) (TreeCount, error) {
	only, err := newPackFilter(patterns)
	if err != nil {
		return TreeCount{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return TreeCount{}, unreadableError(dir, err)
	}
	defer root.Close()
	out := bufio.NewWriterSize(w, ChunkSize)
	p := &treePacker{base: dir, tar: tar.NewWriter(out), limit: limit, links: map[[2]uint64]string{}, filter: only}
	if err := p.packDirectory(root, "", 0); err != nil {
		return p.count, err
	}
	if err := only.missingError(dir); err != nil {
		return p.count, err
	}
	if err := p.tar.Close(); err != nil {
		return p.count, unwritableError("tar", err)
	}
	if err := out.Flush(); err != nil {
		return p.count, unwritableError("tar", err)
	}
	return p.count, nil
}

// packDirectory packs the contents of a directory; name is its path from the base.
func (p *treePacker) packDirectory(root *os.Root, name string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("%s: %w: more than %d directories deep", filepath.Join(p.base, name), roost.Exhausted,
			maxTreeDepth)
	}
	names, err := dirNames(root)
	if err != nil {
		return unreadableError(filepath.Join(p.base, name), err)
	}
	slices.Sort(names)
	for _, n := range names {
		if p.filter.decide(path.Join(name, n)) == nameSkipped {
			continue
		}
		err := p.packEntry(root, n, path.Join(name, n), depth)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return err
		}
	}
	return nil
}

func (p *treePacker) packEntry(root *os.Root, n, name string, depth int) error {
	at := filepath.Join(p.base, name)
	info, err := root.Lstat(n)
	if err != nil {
		return unreadableError(at, err)
	}
	sys := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeSocket != 0 || p.filter.decide(name) == nameTraversed && !info.IsDir() {
		return nil
	}
	if int(sys.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return unreadableError(at, fmt.Errorf("it belongs to uid %d", sys.Uid))
	}
	if p.count.Entries++; p.count.Entries > MaxEntries {
		return fmt.Errorf("%s: %w: more than %d files", p.base, roost.Exhausted, MaxEntries)
	}
	h := &tar.Header{
		Name: name, Mode: int64(sys.Mode & 0o7777), Uid: int(sys.Uid), Gid: int(sys.Gid), ModTime: info.ModTime(),
		Format: tar.FormatPAX,
	}
	inode := [2]uint64{uint64(sys.Dev), sys.Ino}
	if first, ok := p.links[inode]; ok && !info.IsDir() {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return p.writeHeader(h)
	}
	if err := p.entryKind(root, n, h, info, depth); err != nil {
		return err
	}
	if sys.Nlink > 1 && !info.IsDir() {
		p.links[inode] = name
	}
	return nil
}

func (p *treePacker) entryKind(root *os.Root, n string, h *tar.Header, info fs.FileInfo, depth int) (err error) {
	at := filepath.Join(p.base, h.Name)
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return p.packRegular(root, n, h, mode)
	case mode.IsDir():
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		if err := p.writeHeader(h); err != nil {
			return err
		}
		return withPermissions(root, n, mode, 0o700, at, func() error {
			sub, err := root.OpenRoot(n)
			if err != nil {
				return unreadableError(at, err)
			}
			defer sub.Close()
			return p.packDirectory(sub, path.Clean(h.Name), depth+1)
		})
	case mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = root.Readlink(n); err != nil {
			return unreadableError(at, err)
		}
	case mode&fs.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	default:
		return unreadableError(at, errors.New(fileKind(mode)))
	}
	return p.writeHeader(h)
}

// withPermissions calls do while a file has permissions that its owner removed, and
// removes them again.
func withPermissions(root *os.Root, n string, mode fs.FileMode, needs fs.FileMode, at string, do func() error) error {
	if mode&needs == needs || os.Geteuid() == 0 {
		return do()
	}
	if err := root.Chmod(n, mode|needs); err != nil {
		return unreadableError(at, err)
	}
	defer root.Chmod(n, mode)
	return do()
}

func (p *treePacker) writeHeader(h *tar.Header) error {
	if err := p.tar.WriteHeader(h); err != nil {
		return unwritableError("tar: "+h.Name, err)
	}
	return nil
}

func (p *treePacker) packRegular(root *os.Root, n string, h *tar.Header, mode fs.FileMode) error {
	at := filepath.Join(p.base, h.Name)
	return withPermissions(root, n, mode, 0o400, at, func() error {
		f, err := root.OpenFile(n, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err != nil {
			return unreadableError(at, err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New(fileKind(info.Mode()))
		}
		if err != nil {
			return unreadableError(at, err)
		}
		return p.writeContent(f, info, h, at)
	})
}

func (p *treePacker) writeContent(f *os.File, info fs.FileInfo, h *tar.Header, at string) error {
	h.Typeflag = tar.TypeReg
	parts := segments(f, info)
	for _, s := range parts {
		h.Size += s.size
	}
	if p.count.Bytes += h.Size; p.count.Bytes > p.limit {
		return fmt.Errorf("%s: %w: more than %d bytes", p.base, roost.Exhausted, p.limit)
	}
	describeHoles(h, parts, info.Size())
	if err := p.writeHeader(h); err != nil {
		return err
	}
	for _, s := range parts {
		if err := p.copyExactly(io.NewSectionReader(f, s.offset, s.size), s.size, at); err != nil {
			return err
		}
	}
	return nil
}

// copyExactly copies size bytes. If the file has shrunk, the missing bytes are zeros.
func (p *treePacker) copyExactly(from io.Reader, size int64, at string) error {
	n, err := io.Copy(p.tar, from)
	if err == nil && n < size {
		_, err = io.CopyN(p.tar, zeroReader{}, size-n)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return unreadableError(at, err)
	}
	if err != nil {
		return unwritableError("tar", err)
	}
	return nil
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
