package image

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
)

// BuildDirectory writes the file system of a package: the files of a directory. All are
// root's and without times, so equal files make equal bytes wherever they are. What sets
// user IDs loses that; devices, pipes and sockets are left out.
func BuildDirectory(ctx context.Context, dir string, out *os.File, limits Limits) (Result, error) {
	w := erofs.NewWriter(out)
	tree := newLayerTree(limits, w.WriteData)
	var total int64
	nodes := map[string]*erofs.Node{".": tree.root}
	links := map[fileIdentity]*erofs.Node{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = tree.countEntry()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if name == "." {
			if !info.IsDir() {
				return fmt.Errorf("%s: %w: a package is made of a directory", path, roost.NoInput)
			}
			return nil
		}
		if _, err := tree.splitPath(name); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if total += info.Size(); info.Mode().IsRegular() && total > limits.Bytes {
			return fmt.Errorf("%s: %w: the package has more than %v", path, roost.Exhausted, roost.Bytes(limits.Bytes))
		}
		n, err := directoryNode(tree, links, path, name, info)
		if err != nil || n == nil {
			return err
		}
		nodes[name] = n
		nodes[filepath.Dir(name)].Children[filepath.Base(name)] = n
		return nil
	})
	if err != nil {
		return Result{}, fmt.Errorf("package of %s: %w", dir, err)
	}
	tree.noteCases("", tree.root)
	if err := w.Finish(tree.root); err != nil {
		return Result{}, fmt.Errorf("package of %s: %w", dir, err)
	}
	info, err := out.Stat()
	if err != nil {
		return Result{}, err
	}
	return Result{Size: info.Size(), Files: tree.entries, Notes: tree.dropped.notes()}, nil
}

// fileIdentity names a file with several names.
type fileIdentity struct{ device, inode uint64 }

// directoryNode returns the node of one file, or none for what is left out.
func directoryNode(tree *layerTree, links map[fileIdentity]*erofs.Node, path, name string, info fs.FileInfo) (
	n *erofs.Node, err error) {
	permissions := uint16(info.Mode().Perm())
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !info.IsDir() {
		tree.dropped.setuid.add(name)
	}
	switch {
	case info.IsDir():
		return erofs.NewDirectory(permissions), nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return &erofs.Node{Mode: erofs.TypeSymlink | 0o777, Target: target}, err
	case !info.Mode().IsRegular():
		tree.dropped.devices.add(name)
		return nil, nil
	}
	var identity fileIdentity
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		identity = fileIdentity{uint64(s.Dev), s.Ino}
		if n := links[identity]; n != nil {
			return n, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n = &erofs.Node{Mode: erofs.TypeRegular | permissions, Size: info.Size()}
	if n.Block, err = tree.writeData(f, n.Size); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if identity != (fileIdentity{}) {
		links[identity] = n
	}
	return n, nil
}
