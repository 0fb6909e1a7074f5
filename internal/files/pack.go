package files

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

// packer walks a tree and writes it.
type packer struct {
	base  string
	tar   *tar.Writer
	limit int64
	done  Tree
	links map[[2]uint64]string // inodes with several names, and the first of those
	only  *choice              // nil: everything
}

func packTree(dir string, limit int64, patterns []string, w io.Writer) (Tree, error) {
	only, err := choose(patterns)
	if err != nil {
		return Tree{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, unreadable(dir, err)
	}
	defer root.Close()
	out := bufio.NewWriterSize(w, ChunkSize)
	p := &packer{base: dir, tar: tar.NewWriter(out), limit: limit, links: map[[2]uint64]string{}, only: only}
	if err := p.directory(root, "", 0); err != nil {
		return p.done, err
	}
	if err := only.missing(dir); err != nil {
		return p.done, err
	}
	if err := p.tar.Close(); err != nil {
		return p.done, unwritable("tar", err)
	}
	if err := out.Flush(); err != nil {
		return p.done, unwritable("tar", err)
	}
	return p.done, nil
}

// directory packs what is in a directory; name is its own from the base.
func (p *packer) directory(root *os.Root, name string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("%s: %w: more than %d directories deep", filepath.Join(p.base, name), roost.Exhausted, maxTreeDepth)
	}
	names, err := namesIn(root)
	if err != nil {
		return unreadable(filepath.Join(p.base, name), err)
	}
	slices.Sort(names)
	for _, n := range names {
		if p.only.takes(path.Join(name, n)) == leaves {
			continue
		}
		err := p.entry(root, n, path.Join(name, n), depth)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // gone since
			return err
		}
	}
	return nil
}

func (p *packer) entry(root *os.Root, n, name string, depth int) error {
	at := filepath.Join(p.base, name)
	info, err := root.Lstat(n)
	if err != nil {
		return unreadable(at, err)
	}
	sys := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeSocket != 0 || p.only.takes(name) == passes && !info.IsDir() {
		return nil
	}
	if int(sys.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return unreadable(at, fmt.Errorf("it belongs to uid %d", sys.Uid))
	}
	if p.done.Entries++; p.done.Entries > MaxEntries {
		return fmt.Errorf("%s: %w: more than %d files", p.base, roost.Exhausted, MaxEntries)
	}
	h := &tar.Header{
		Name: name, Mode: int64(sys.Mode & 0o7777), Uid: int(sys.Uid), Gid: int(sys.Gid), ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	inode := [2]uint64{uint64(sys.Dev), sys.Ino}
	if first, ok := p.links[inode]; ok && !info.IsDir() {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return p.header(h)
	}
	if err := p.kind(root, n, h, info, depth); err != nil {
		return err
	}
	if sys.Nlink > 1 && !info.IsDir() {
		p.links[inode] = name
	}
	return nil
}

func (p *packer) kind(root *os.Root, n string, h *tar.Header, info fs.FileInfo, depth int) (err error) {
	at := filepath.Join(p.base, h.Name)
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return p.regular(root, n, h, mode)
	case mode.IsDir():
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		if err := p.header(h); err != nil {
			return err
		}
		return opened(root, n, mode, 0o700, at, func() error {
			sub, err := root.OpenRoot(n)
			if err != nil {
				return unreadable(at, err)
			}
			defer sub.Close()
			return p.directory(sub, path.Clean(h.Name), depth+1)
		})
	case mode&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = root.Readlink(n); err != nil {
			return unreadable(at, err)
		}
	case mode&fs.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	default:
		return unreadable(at, errors.New(sort(mode)))
	}
	return p.header(h)
}

// opened does what needs permissions that the owner took from himself, and takes them again.
func opened(root *os.Root, n string, mode fs.FileMode, needs fs.FileMode, at string, do func() error) error {
	if mode&needs == needs || os.Geteuid() == 0 {
		return do()
	}
	if err := root.Chmod(n, mode|needs); err != nil {
		return unreadable(at, err)
	}
	defer root.Chmod(n, mode)
	return do()
}

func (p *packer) header(h *tar.Header) error {
	if err := p.tar.WriteHeader(h); err != nil {
		return unwritable("tar: "+h.Name, err)
	}
	return nil
}

func (p *packer) regular(root *os.Root, n string, h *tar.Header, mode fs.FileMode) error {
	at := filepath.Join(p.base, h.Name)
	return opened(root, n, mode, 0o400, at, func() error {
		f, err := root.OpenFile(n, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		if err != nil {
			return unreadable(at, err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New(sort(info.Mode()))
		}
		if err != nil {
			return unreadable(at, err)
		}
		return p.content(f, info, h, at)
	})
}

func (p *packer) content(f *os.File, info fs.FileInfo, h *tar.Header, at string) error {
	h.Typeflag = tar.TypeReg
	parts := segments(f, info)
	for _, s := range parts {
		h.Size += s.size
	}
	if p.done.Bytes += h.Size; p.done.Bytes > p.limit {
		return fmt.Errorf("%s: %w: more than %d bytes", p.base, roost.Exhausted, p.limit)
	}
	describeHoles(h, parts, info.Size())
	if err := p.header(h); err != nil {
		return err
	}
	for _, s := range parts {
		if err := p.copy(io.NewSectionReader(f, s.offset, s.size), s.size, at); err != nil {
			return err
		}
	}
	return nil
}

// copy copies so many bytes: what is missing of them, because the file shrank, are zeros.
func (p *packer) copy(from io.Reader, size int64, at string) error {
	n, err := io.Copy(p.tar, from)
	if err == nil && n < size {
		_, err = io.CopyN(p.tar, zeros{}, size-n)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return unreadable(at, err)
	}
	if err != nil {
		return unwritable("tar", err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
