package image

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
)

// BuildDirectory writes the file system of a package: the files of a directory. All are
// root's and without times, and everybody may read them, so equal files make equal bytes
// wherever they are. What sets user IDs loses that. A package with devices, pipes or
// sockets is refused, and so is one with names that differ in case only, unless
// anyCase.
func BuildDirectory(ctx context.Context, dir string, out *os.File, limits Limits, anyCase bool) (Result, error) {
	w := erofs.NewWriter(out)
	c := newDirectoryCopy(ctx, dir, limits, w.WriteData)
	if err := c.run(); err != nil {
		return Result{}, fmt.Errorf("package of %s: %w", dir, err)
	}
	c.tree.noteCases("", c.tree.root)
	if err := c.tree.dropped.refuse(anyCase); err != nil {
		return Result{}, fmt.Errorf("package of %s: %w", dir, err)
	}
	if err := w.Finish(c.tree.root); err != nil {
		return Result{}, fmt.Errorf("package of %s: %w", dir, err)
	}
	info, err := out.Stat()
	if err != nil {
		return Result{}, err
	}
	return Result{Size: info.Size(), Files: c.tree.entries, Notes: c.tree.dropped.notes()}, nil
}

// buildTree writes an image of a directory that is the root of a system. Its files are
// what they would be in a package.
func buildTree(ctx context.Context, dir string, out *os.File, limits Limits) (Result, error) {
	w := erofs.NewWriter(out)
	c := newDirectoryCopy(ctx, dir, limits, w.WriteData)
	c.settings = newApptainerFiles()
	if err := c.run(); err != nil {
		return Result{}, err
	}
	return finishImage(c.tree, w, c.settings, out)
}

// directoryCopy copies the files of a directory into a tree.
type directoryCopy struct {
	ctx      context.Context
	dir      string
	tree     *layerTree
	total    int64
	nodes    map[string]*erofs.Node // directories by their paths
	links    map[fileIdentity]*erofs.Node
	settings *apptainerFiles // of an image; nil for a package
}

func newDirectoryCopy(ctx context.Context, dir string, limits Limits,
	writeData func(io.Reader, int64) (uint32, error)) *directoryCopy {
	tree := newLayerTree(limits, writeData)
	return &directoryCopy{ctx: ctx, dir: dir, tree: tree, nodes: map[string]*erofs.Node{".": tree.root},
		links: map[fileIdentity]*erofs.Node{}}
}

func (c *directoryCopy) run() error {
	if _, err := os.Stat(c.dir); err != nil {
		return fmt.Errorf("%w: %w", roost.NoInput, err)
	}
	return filepath.WalkDir(c.dir, c.visit)
}

func (c *directoryCopy) visit(path string, _ fs.DirEntry, err error) error {
	if err == nil {
		err = c.ctx.Err()
	}
	if err == nil {
		err = c.tree.countEntry()
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(c.dir, path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if name == "." {
		if !info.IsDir() {
			return fmt.Errorf("%s: %w: it is no directory", path, roost.NoInput)
		}
		return nil
	}
	if _, err := c.tree.splitPath(name); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.total += info.Size(); info.Mode().IsRegular() && c.total > c.tree.limits.Bytes {
		return fmt.Errorf("%s: %w: the files before it have more than %v", path, roost.Exhausted,
			roost.Bytes(c.tree.limits.Bytes))
	}
	n, err := c.newNode(path, name, info)
	if err != nil || n == nil {
		return err
	}
	c.nodes[name] = n
	c.nodes[filepath.Dir(name)].Children[filepath.Base(name)] = n
	return nil
}

// fileIdentity names a file with several names.
type fileIdentity struct{ device, inode uint64 }

// newNode returns the node of one file, or none for what is left out.
func (c *directoryCopy) newNode(path, name string, info fs.FileInfo) (n *erofs.Node, err error) {
	permissions := uint16(info.Mode().Perm())
	if c.settings == nil {
		permissions = c.tree.dropped.packagePermissions(name, info)
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !info.IsDir() {
		c.tree.dropped.setuid.add(name)
	}
	switch {
	case info.IsDir():
		return erofs.NewDirectory(permissions), nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return &erofs.Node{Mode: erofs.TypeSymlink | 0o777, Target: target}, err
	case !info.Mode().IsRegular():
		c.tree.dropped.devices.add(name)
		return nil, nil
	}
	var identity fileIdentity
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		identity = fileIdentity{uint64(s.Dev), s.Ino}
		if n := c.links[identity]; n != nil {
			return n, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n = &erofs.Node{Mode: erofs.TypeRegular | permissions, Size: info.Size()}
	contents := io.Reader(f)
	if c.settings != nil {
		contents = c.settings.watch(name, n.Size, f)
	}
	if n.Block, err = c.tree.writeData(contents, n.Size); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if identity != (fileIdentity{}) {
		c.links[identity] = n
	}
	return n, nil
}
