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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// treeUnpacker creates the contents of a tar below root.
type treeUnpacker struct {
	base         string
	root         *os.Root
	tar          *tar.Reader
	limit        int64
	intoExisting bool // existing contents are retained
	count        TreeCount
	dirs         []*tar.Header // their modes and times are set last, because files made in them change these
}

func unpackTree(dir string, limit int64, adds bool, r io.Reader) (TreeCount, error) {
	if !adds {
		if err := removeAll(dir, "."); err != nil {
			return TreeCount{}, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return TreeCount{}, unwritableError(dir, err)
	}
	defer root.Close()
	u := &treeUnpacker{base: dir, root: root, tar: tar.NewReader(bufio.NewReaderSize(r, ChunkSize)), limit: limit,
		intoExisting: adds}
	for {
		h, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = u.unpackEntry(h)
		} else if !errors.Is(err, roost.Invalid) {
			err = fmt.Errorf("tar: %w: %w", roost.Invalid, err)
		}
		if err != nil {
			return u.count, err
		}
	}
	slices.Reverse(u.dirs)
	for _, h := range u.dirs {
		if err := u.applyAttributes(h); err != nil {
			return u.count, unwritableError(filepath.Join(dir, h.Name), err)
		}
	}
	io.Copy(io.Discard, r) // otherwise the writer would die of a closed pipe
	return u.count, nil
}

func (u *treeUnpacker) unpackEntry(h *tar.Header) error {
	if h.Typeflag == tar.TypeDir {
		h.Name = strings.TrimSuffix(h.Name, "/")
	}
	if err := checkPackedName(h.Name); err != nil {
		return err
	}
	if h.Uid != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("%q: %w: it belongs to uid %d", h.Name, roost.Invalid, h.Uid)
	}
	if u.count.Entries++; u.count.Entries > MaxEntries {
		return fmt.Errorf("%s: %w: more than %d files", u.base, roost.Exhausted, MaxEntries)
	}
	err := u.makeEntry(h)
	if err == nil || errors.Is(err, roost.Invalid) || errors.Is(err, roost.Exhausted) {
		return err
	}
	return unwritableError(filepath.Join(u.base, h.Name), err)
}

// checkPackedName accepts any name that a file can have below a directory. Some of these
// names could not be sent in a message.
func checkPackedName(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || strings.Count(name, "/") > maxTreeDepth {
		return fmt.Errorf("%.200q: %w: it is not a plain name below the directory", name, roost.Invalid)
	}
	return nil
}

func (u *treeUnpacker) makeEntry(h *tar.Header) error {
	if u.intoExisting {
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
		return u.unpackRegular(h)
	case tar.TypeDir:
		u.dirs = append(u.dirs, h)
		return u.root.Mkdir(h.Name, 0o700)
	case tar.TypeSymlink:
		err := u.root.Symlink(h.Linkname, h.Name)
		if err == nil {
			err = u.chown(h)
		}
		if err == nil {
			err = u.setTimes(h)
		}
		return err
	case tar.TypeLink:
		if err := checkPackedName(h.Linkname); err != nil {
			return err
		}
		return u.root.Link(h.Linkname, h.Name)
	case tar.TypeFifo:
		return u.makeFIFO(h)
	}
	return fmt.Errorf("%q: %w: it is neither file, directory, link nor fifo", h.Name, roost.Invalid)
}

func (u *treeUnpacker) unpackRegular(h *tar.Header) error {
	parts, size, err := parseHoles(h)
	if err != nil {
		return err
	}
	if u.count.Bytes += h.Size; u.count.Bytes > u.limit {
		return fmt.Errorf("%s: %w: more than %d bytes", u.base, roost.Exhausted, u.limit)
	}
	f, err := u.root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.unpackContent(f, parts, size)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return u.applyAttributes(h)
}

func (u *treeUnpacker) unpackContent(f *os.File, parts []dataSegment, size int64) error {
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

// modeOf returns the mode with the bits that package fs stores elsewhere.
func modeOf(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode).Perm()
	for bit, flag := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if h.Mode&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// openParent opens the parent directory of a name and calls do. A call by descriptor acts
// in that directory and follows no link.
func (u *treeUnpacker) openParent(name string, do func(dir int, last string) error) error {
	dir, err := u.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(int(dir.Fd()), path.Base(name))
}

func (u *treeUnpacker) makeFIFO(h *tar.Header) error {
	err := u.openParent(h.Name, func(dir int, last string) error { return unix.Mkfifoat(dir, last, 0o600) })
	if err != nil {
		return err
	}
	return u.applyAttributes(h)
}

// applyAttributes sets owner, mode and times of an existing file.
func (u *treeUnpacker) applyAttributes(h *tar.Header) error {
	if err := u.chown(h); err != nil {
		return err
	}
	if err := u.root.Chmod(h.Name, modeOf(h)); err != nil {
		return err
	}
	return u.setTimes(h)
}

// chown restores the owner. A group that the user has left since is not restored.
func (u *treeUnpacker) chown(h *tar.Header) error {
	if os.Geteuid() == 0 {
		return u.root.Lchown(h.Name, h.Uid, h.Gid)
	}
	if h.Gid != os.Getegid() {
		u.root.Lchown(h.Name, -1, h.Gid)
	}
	return nil
}

func (u *treeUnpacker) setTimes(h *tar.Header) error {
	ts := unix.NsecToTimespec(h.ModTime.UnixNano())
	return u.openParent(h.Name, func(dir int, last string) error {
		return unix.UtimesNanoAt(dir, last, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
