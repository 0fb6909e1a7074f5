package containerimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/store"
)

// unpackedTrees are directories with the files of images, for machines that mount none:
// those of ordinary users. All files are the user's.
type unpackedTrees struct{ dir string }

// The names of directories that are not trees: one that is being made, and one that is
// being removed.
const (
	newTree = ".new-"
	oldTree = ".old-"
)

// list returns the digests of the trees. What an earlier process did not complete goes.
func (u unpackedTrees) list() ([]store.Digest, error) {
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		return nil, err
	}
	var digests []store.Digest
	for _, e := range entries {
		if digest, err := store.ParseDigest("sha256:" + e.Name()); err == nil {
			digests = append(digests, digest)
		} else if strings.HasPrefix(e.Name(), newTree) {
			if err := removeTree(filepath.Join(u.dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return digests, u.sweep()
}

// make unpacks an image. It has its name when all of it is on the disk.
func (u unpackedTrees) make(ctx context.Context, file, at string) error {
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	temp := filepath.Join(u.dir, newTree+filepath.Base(at))
	if err := removeTree(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	err := unpack(ctx, file, temp)
	if err == nil {
		err = syncFileSystem(temp)
	}
	if err == nil {
		err = os.Rename(temp, at)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w: no room to unpack it: %w", roost.Exhausted, err)
	}
	return errors.Join(err, removeTree(temp))
}

// remove takes the name of a tree away. sweep removes its files.
func (u unpackedTrees) remove(at string) error {
	old, err := os.MkdirTemp(u.dir, oldTree+"*")
	if err != nil {
		return err
	}
	err = os.Rename(at, filepath.Join(old, filepath.Base(at)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweep removes the files of removed trees.
func (u unpackedTrees) sweep() error {
	old, err := filepath.Glob(filepath.Join(u.dir, oldTree+"*"))
	for _, dir := range old {
		err = errors.Join(err, removeTree(dir))
	}
	return err
}

// stays reports that trees are used again by the next process.
func (u unpackedTrees) stays() bool { return true }

// removeTree removes a directory, even one in which its owner may not write.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() { // before its names are read, and again if they could not be
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

func syncFileSystem(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// unpack writes the files of an image below a directory. Owners are not kept, and what
// sets user IDs loses that.
func unpack(ctx context.Context, file, dir string) error {
	image, err := os.Open(file)
	if err != nil {
		return err
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacking{root: root, links: map[uint64]string{}}
	if err := erofs.Walk(image, info.Size(), func(f erofs.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return u.add(f)
	}); err != nil {
		return err
	}
	for i := len(u.directories) - 1; i >= 0; i-- { // the innermost first: it may be closed afterwards
		d := u.directories[i]
		if err := u.setAttributes(d.path, d.mode, d.mtime); err != nil {
			return err
		}
	}
	return nil
}

// unpacking is the state of unpack.
type unpacking struct {
	root        *os.Root
	links       map[uint64]string // the first names of files with several, by their inodes
	directories []unpackedDirectory
}

// unpackedDirectory has what a directory gets when all of its files are there.
type unpackedDirectory struct {
	path  string
	mode  fs.FileMode
	mtime time.Time
}

func (u *unpacking) add(f erofs.File) error {
	n := f.Node
	mode, mtime := fs.FileMode(n.Mode&0o777), time.Unix(n.Mtime, int64(n.MtimeNs))
	if n.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if n.IsDirectory() {
		u.directories = append(u.directories, unpackedDirectory{f.Path, mode, mtime})
		if f.Path == "." {
			return nil
		}
		return u.root.Mkdir(f.Path, 0o700)
	}
	if first, ok := u.links[f.Inode]; ok {
		return u.root.Link(first, f.Path)
	}
	if f.Links > 1 {
		u.links[f.Inode] = f.Path
	}
	if n.IsSymlink() {
		return u.root.Symlink(n.Target, f.Path)
	}
	if err := u.writeFile(f); err != nil {
		return err
	}
	return u.setAttributes(f.Path, mode, mtime)
}

func (u *unpacking) writeFile(f erofs.File) error {
	out, err := u.root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, f.Contents()); err != nil {
		return err
	}
	for name, value := range f.Node.Xattrs {
		err := unix.Fsetxattr(int(out.Fd()), name, []byte(value), 0)
		if err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("%s: %s: %w", f.Path, name, err)
		}
	}
	return out.Close()
}

// setAttributes sets the mode and the time of a file that is no symbolic link.
func (u *unpacking) setAttributes(path string, mode fs.FileMode, mtime time.Time) error {
	if err := u.root.Chtimes(path, mtime, mtime); err != nil {
		return err
	}
	return u.root.Chmod(path, mode)
}
