package userfiles

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
)

// tempFile is a file that is being written and has no final name yet.
type tempFile struct {
	root           *os.Root
	file           *os.File
	base           string
	name, tempName string
	sync           bool
	hole           int64      // bytes left out since the last data
	stagedSet      *stagedSet // the set that it belongs to, whose root it uses; nil: it has its own
}

// discardFile closes and removes the file.
func (d *tempFile) discardFile() {
	d.file.Close()
	d.root.Remove(d.tempName)
	d.closeRoot()
}

// closeRoot closes the root, if it is the file's own.
func (d *tempFile) closeRoot() {
	if d.stagedSet == nil {
		d.root.Close()
	}
}

func (s *agentServer) createFile(q *agentRequest) error {
	path := filepath.Join(q.Base, q.Name)
	if err := CheckName(q.Name); err != nil {
		return unwritableError(path, err)
	}
	d := &tempFile{base: q.Base, name: q.Name, sync: q.Sync}
	if q.Stage != 0 {
		set, err := s.stagedSetOf(q)
		if err != nil {
			return err
		}
		d.stagedSet, d.root = set, set.root
	} else {
		root, err := os.OpenRoot(q.Base)
		if err != nil {
			return unwritableError(q.Base, err)
		}
		d.root = root
	}
	if err := d.beginFile(fs.FileMode(q.Mode).Perm()); err != nil {
		d.closeRoot()
		return unwritableError(path, err)
	}
	s.writers[q.Handle] = d
	return nil
}

func (d *tempFile) beginFile(mode fs.FileMode) (err error) {
	if info, err := d.root.Lstat(d.name); err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return errors.New(fileKind(info.Mode()))
	}
	dir := filepath.Dir(d.name)
	switch {
	case dir == ".":
	case d.stagedSet != nil:
		err = d.stagedSet.mkdir(dir, 0o755)
	default:
		err = d.root.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o644
	}
	d.tempName = filepath.Join(dir, ".roost-"+rand.Text()+".tmp")
	d.file, err = d.root.OpenFile(d.tempName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return err
}

// writeChunk leaves a hole, and appends data after it.
func (s *agentServer) writeChunk(handle uint64, hole int64, data []byte) (err error) {
	d := s.writers[handle]
	if d == nil || hole < 0 {
		return fmt.Errorf("handle %d: %w", handle, roost.Invalid)
	}
	if hole > 0 {
		d.hole += hole
		_, err = d.file.Seek(hole, io.SeekCurrent)
	}
	if len(data) > 0 && err == nil {
		d.hole = 0
		_, err = d.file.Write(data)
	}
	if err != nil {
		return unwritableError(filepath.Join(d.base, d.name), err)
	}
	return nil
}

// completeFile closes a file whose last byte was written.
func (d *tempFile) completeFile() (err error) {
	if d.hole > 0 { // no data follows that would extend the file
		var size int64
		if size, err = d.file.Seek(0, io.SeekCurrent); err == nil {
			err = d.file.Truncate(size)
		}
	}
	if d.sync && err == nil {
		err = d.file.Sync()
	}
	if cerr := d.file.Close(); err == nil {
		err = cerr
	}
	return err
}

func (s *agentServer) commitFile(handle uint64) (err error) {
	d := s.writers[handle]
	if d == nil {
		return fmt.Errorf("handle %d: %w", handle, roost.Invalid)
	}
	delete(s.writers, handle)
	defer d.closeRoot()
	if err = d.completeFile(); err == nil && d.stagedSet != nil {
		d.stagedSet.files = append(d.stagedSet.files, stagedFile{d.tempName, d.name})
		return nil
	}
	if err == nil {
		err = d.root.Rename(d.tempName, d.name)
	}
	if err != nil {
		d.root.Remove(d.tempName)
		return unwritableError(filepath.Join(d.base, d.name), err)
	}
	return nil
}

// appendTo appends to a regular file: to no device, and without waiting at a fifo. With a
// mode it makes one that is missing.
func appendTo(base, name string, create fs.FileMode, data []byte) error {
	path := filepath.Join(base, name)
	if err := CheckName(name); err != nil {
		return unwritableError(path, err)
	}
	flags := os.O_WRONLY | os.O_APPEND | syscall.O_NONBLOCK | syscall.O_NOCTTY
	if create != 0 {
		flags |= os.O_CREATE
	}
	f, err := openBelow(base, name, flags, create)
	if err != nil {
		return unwritableError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(fileKind(info.Mode()))
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		return unwritableError(path, err)
	}
	return nil
}

func (s *agentServer) makeDir(q *agentRequest) error {
	path := filepath.Join(q.Base, q.Name)
	if err := CheckName(q.Name); err != nil {
		return unwritableError(path, err)
	}
	mode := fs.FileMode(q.Mode).Perm()
	if mode == 0 {
		mode = 0o755
	}
	if q.Stage != 0 {
		set, err := s.stagedSetOf(q)
		if err == nil {
			err = set.mkdir(q.Name, mode|0o700)
		}
		if err != nil {
			return unwritableError(path, err)
		}
		return nil
	}
	root, err := os.OpenRoot(q.Base)
	if err != nil {
		return unwritableError(q.Base, err)
	}
	defer root.Close()
	if err := root.MkdirAll(q.Name, mode|0o700); err != nil {
		return unwritableError(path, err)
	}
	return nil
}

// removeAll is os.RemoveAll below a root; for "." it empties the base.
func removeAll(base, name string) error {
	root, err := os.OpenRoot(base)
	// its owner has removed all permissions
	if errors.Is(err, fs.ErrPermission) && name == "." && os.Chmod(base, 0o700) == nil {
		root, err = os.OpenRoot(base)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritableError(base, err)
	}
	defer root.Close()
	names := []string{name}
	if name == "." {
		if names, err = dirNames(root); err != nil {
			return unwritableError(base, err)
		}
	}
	var failed error
	for _, n := range names {
		if err := removeTree(root, n); err != nil && failed == nil {
			failed = unwritableError(filepath.Join(base, n), err)
		}
	}
	return failed
}

func dirNames(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// removeTree removes a tree, even directories without permissions for their owner, which
// it changes first.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	makeRemovable(root, name)
	return root.RemoveAll(name)
}

func makeRemovable(root *os.Root, name string) {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	root.Chmod(name, 0o700)
	dir, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dirNames(dir)
	for _, n := range names {
		makeRemovable(dir, n)
	}
}
