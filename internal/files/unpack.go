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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// unpacker makes what a tar says below root.
type unpacker struct {
	base  string
	root  *os.Root
	tar   *tar.Reader
	limit int64
	adds  bool // to what is there
	done  Tree
	dirs  []*tar.Header // whose modes and times are set last: what is made in them changes those
}

func unpackTree(dir string, limit int64, adds bool, r io.Reader) (Tree, error) {
	if !adds {
		if err := remove(dir, "."); err != nil {
			return Tree{}, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, unwritable(dir, err)
	}
	defer root.Close()
	u := &unpacker{base: dir, root: root, tar: tar.NewReader(bufio.NewReaderSize(r, ChunkSize)), limit: limit, adds: adds}
	for {
		h, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = u.entry(h)
		} else if !errors.Is(err, roost.Invalid) {
			err = fmt.Errorf("tar: %w: %w", roost.Invalid, err)
		}
		if err != nil {
			return u.done, err
		}
	}
	slices.Reverse(u.dirs)
	for _, h := range u.dirs {
		if err := u.finish(h); err != nil {
			return u.done, unwritable(filepath.Join(dir, h.Name), err)
		}
	}
	io.Copy(io.Discard, r) // whoever writes is not to die of a closed pipe
	return u.done, nil
}

func (u *unpacker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeDir {
		h.Name = strings.TrimSuffix(h.Name, "/")
	}
	if err := checkPacked(h.Name); err != nil {
		return err
	}
	if h.Uid != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("%q: %w: it belongs to uid %d", h.Name, roost.Invalid, h.Uid)
	}
	if u.done.Entries++; u.done.Entries > MaxEntries {
		return fmt.Errorf("%s: %w: more than %d files", u.base, roost.Exhausted, MaxEntries)
	}
	err := u.make(h)
	if err == nil || errors.Is(err, roost.Invalid) || errors.Is(err, roost.Exhausted) {
		return err
	}
	return unwritable(filepath.Join(u.base, h.Name), err)
}

// checkPacked lets any name pass that a file can have below a directory: also one that could not travel by itself.
func checkPacked(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || strings.Count(name, "/") > maxTreeDepth {
		return fmt.Errorf("%.200q: %w: it is not a plain name below the directory", name, roost.Invalid)
	}
	return nil
}

func (u *unpacker) make(h *tar.Header) error {
	if u.adds {
		there, err := u.root.Lstat(h.Name)
		switch {
		case err != nil:
		case there.IsDir() && h.Typeflag == tar.TypeDir:
			u.dirs = append(u.dirs, h)
			return u.root.Chmod(h.Name, 0o700)
		default:
			if err := u.root.RemoveAll(h.Name); err != nil {
				return err
			}
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.regular(h)
	case tar.TypeDir:
		u.dirs = append(u.dirs, h)
		return u.root.Mkdir(h.Name, 0o700)
	case tar.TypeSymlink:
		err := u.root.Symlink(h.Linkname, h.Name)
		if err == nil {
			err = u.give(h)
		}
		if err == nil {
			err = u.timed(h)
		}
		return err
	case tar.TypeLink:
		if err := checkPacked(h.Linkname); err != nil {
			return err
		}
		return u.root.Link(h.Linkname, h.Name)
	case tar.TypeFifo:
		return u.fifo(h)
	}
	return fmt.Errorf("%q: %w: it is neither file, directory, link nor fifo", h.Name, roost.Invalid)
}

func (u *unpacker) regular(h *tar.Header) error {
	parts, size, err := described(h)
	if err != nil {
		return err
	}
	if u.done.Bytes += h.Size; u.done.Bytes > u.limit {
		return fmt.Errorf("%s: %w: more than %d bytes", u.base, roost.Exhausted, u.limit)
	}
	f, err := u.root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.content(f, parts, size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return u.finish(h)
}

func (u *unpacker) content(f *os.File, parts []segment, size int64) error {
	for _, s := range parts {
		if _, err := f.Seek(s.offset, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(f, u.tar, s.size); err != nil {
			return err
		}
	}
	return f.Truncate(size)
}

// modeOf is the mode with the bits that package fs keeps elsewhere.
func modeOf(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode).Perm()
	for bit, flag := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if h.Mode&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// in opens the directory that is to hold a name, so that a call by descriptor acts in it and follows nothing.
func (u *unpacker) in(name string, do func(dir int, last string) error) error {
	dir, err := u.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(int(dir.Fd()), path.Base(name))
}

func (u *unpacker) fifo(h *tar.Header) error {
	err := u.in(h.Name, func(dir int, last string) error { return unix.Mkfifoat(dir, last, 0o600) })
	if err != nil {
		return err
	}
	return u.finish(h)
}

// finish sets owner, mode and times of what is there.
func (u *unpacker) finish(h *tar.Header) error {
	if err := u.give(h); err != nil {
		return err
	}
	if err := u.root.Chmod(h.Name, modeOf(h)); err != nil {
		return err
	}
	return u.timed(h)
}

// give makes it belong to whom it belonged. A group that the user has left since stays away.
func (u *unpacker) give(h *tar.Header) error {
	if os.Geteuid() == 0 {
		return u.root.Lchown(h.Name, h.Uid, h.Gid)
	}
	if h.Gid != os.Getegid() {
		u.root.Lchown(h.Name, -1, h.Gid)
	}
	return nil
}

func (u *unpacker) timed(h *tar.Header) error {
	ts := unix.NsecToTimespec(h.ModTime.UnixNano())
	return u.in(h.Name, func(dir int, last string) error {
		return unix.UtimesNanoAt(dir, last, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
