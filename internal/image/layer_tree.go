package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
)

// layerTree is the tree that layers make, one upon the other.
type layerTree struct {
	root   *erofs.Node
	limits Limits
	// writeData stores the contents of a file, and returns where
	writeData func(r io.Reader, size int64) (uint32, error)
	// fresh are the names that the present layer made, by their directory: whiteouts are
	// about the layers below it
	fresh   map[*erofs.Node]map[string]bool
	entries int
	dropped droppedParts
}

func newLayerTree(limits Limits, writeData func(io.Reader, int64) (uint32, error)) *layerTree {
	return &layerTree{root: erofs.NewDirectory(0o755), limits: limits, writeData: writeData}
}

// The names of whiteouts: files of a layer that remove those of the layers below.
const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
	auxiliaryName  = ".wh..wh." // other files of AUFS itself
)

// xattrRecord begins the name of a PAX record with an extended attribute.
const xattrRecord = "SCHILY.xattr."

// apply adds one layer.
func (t *layerTree) apply(ctx context.Context, layer io.Reader) error {
	t.fresh = map[*erofs.Node]map[string]bool{}
	archive := tar.NewReader(layer)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := t.addEntry(h, archive); err != nil {
			return fmt.Errorf("%.300q: %w", h.Name, err)
		}
	}
}

// countEntry notes one more file.
func (t *layerTree) countEntry() error {
	if t.entries++; t.entries > t.limits.Entries {
		return fmt.Errorf("%w: the image has more than %d files", roost.Exhausted, t.limits.Entries)
	}
	return nil
}

// addEntry adds what one header of an archive says.
func (t *layerTree) addEntry(h *tar.Header, contents io.Reader) error {
	if err := t.countEntry(); err != nil {
		return err
	}
	words, err := t.splitPath(h.Name)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		if h.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the root is no directory", roost.Invalid)
		}
		return t.setAttributes(t.root, h)
	}
	parent, err := t.makeDirectories(words[:len(words)-1])
	if err != nil {
		return err
	}
	name := words[len(words)-1]
	if strings.HasPrefix(name, whiteoutPrefix) {
		return t.whiteOut(parent, name)
	}
	n, err := t.newNode(parent, name, h, contents)
	if err != nil || n == nil {
		return err
	}
	t.put(parent, name, n)
	return nil
}

// splitPath returns the names in a path from the root. A path that leaves the root is
// refused.
func (t *layerTree) splitPath(path string) (words []string, err error) {
	for word := range strings.SplitSeq(path, "/") {
		switch {
		case word == "" || word == ".":
		case word == "..":
			return nil, fmt.Errorf("%w: a name with \"..\" would leave the image", roost.Invalid)
		case len(word) > erofs.MaxNameBytes || strings.ContainsRune(word, 0):
			return nil, fmt.Errorf("%w: a name has %d bytes, and %d is the most", roost.Invalid, len(word),
				erofs.MaxNameBytes)
		default:
			words = append(words, word)
		}
	}
	if len(words) > t.limits.Depth {
		return nil, fmt.Errorf("%w: it is in %d directories, and %d is the most", roost.Exhausted, len(words)-1,
			t.limits.Depth)
	}
	return words, nil
}

// newNode returns the node of a header. It is an old one for a hard link, or for a
// directory that is there, and none for what is left out.
func (t *layerTree) newNode(parent *erofs.Node, name string, h *tar.Header, contents io.Reader) (*erofs.Node, error) {
	n := &erofs.Node{}
	switch h.Typeflag {
	case tar.TypeDir:
		if n = parent.Children[name]; n == nil || !n.IsDirectory() {
			n = erofs.NewDirectory(0)
		}
	case tar.TypeReg, '\x00', tar.TypeGNUSparse, tar.TypeCont:
		n.Mode, n.Size = erofs.TypeRegular, h.Size
		if h.Size > t.limits.Bytes {
			return nil, fmt.Errorf("%w: the file has %v, and an image at most %v", roost.Exhausted, roost.Bytes(h.Size),
				roost.Bytes(t.limits.Bytes))
		}
		var err error
		if n.Block, err = t.writeData(contents, h.Size); err != nil {
			return nil, err
		}
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > erofs.MaxTargetBytes || strings.ContainsRune(h.Linkname, 0) {
			return nil, fmt.Errorf("%w: a symbolic link has a target of %d bytes, and %d is the most", roost.Invalid,
				len(h.Linkname), erofs.MaxTargetBytes)
		}
		n.Mode, n.Target = erofs.TypeSymlink, h.Linkname
	case tar.TypeLink:
		return t.linkTarget(h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		t.dropped.devices.add(h.Name)
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: no file has the type %q", roost.Invalid, h.Typeflag)
	}
	return n, t.setAttributes(n, h)
}

// xattrOverhead is more than an extended attribute takes beside its name and its value.
const xattrOverhead = 24

// setAttributes sets what the header of a file says besides its contents.
func (t *layerTree) setAttributes(n *erofs.Node, h *tar.Header) error {
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) >= math.MaxUint32 || int64(h.Gid) >= math.MaxUint32 {
		return fmt.Errorf("%w: it belongs to uid %d and gid %d", roost.Invalid, h.Uid, h.Gid)
	}
	n.Mode = n.Mode&erofs.TypeMask | uint16(h.Mode&0o7777)
	if n.IsSymlink() {
		n.Mode = erofs.TypeSymlink | 0o777
	}
	n.UID, n.GID = uint32(h.Uid), uint32(h.Gid)
	n.Mtime, n.MtimeNs = h.ModTime.Unix(), uint32(h.ModTime.Nanosecond())
	if n.Mtime < 0 {
		n.Mtime, n.MtimeNs = 0, 0
	}
	n.Xattrs = nil
	size := 0
	for _, key := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		name, ok := strings.CutPrefix(key, xattrRecord)
		if !ok {
			continue
		}
		value := h.PAXRecords[key]
		short, ok := strings.CutPrefix(name, "user.")
		bytes := len(name) + len(value) + xattrOverhead
		if !ok || short == "" || strings.HasPrefix(short, "overlay.") || len(name) > erofs.MaxNameBytes ||
			size+bytes > erofs.MaxXattrBytes {
			t.dropped.xattrs.add(h.Name + ": " + name)
			continue
		}
		size += bytes
		if n.Xattrs == nil {
			n.Xattrs = map[string]string{}
		}
		n.Xattrs[name] = value
	}
	return nil
}

// put gives a node a name. What had the name before goes, with all below it.
func (t *layerTree) put(parent *erofs.Node, name string, n *erofs.Node) {
	parent.Children[name] = n
	if t.fresh[parent] == nil {
		t.fresh[parent] = map[string]bool{}
	}
	t.fresh[parent][name] = true
}

// whiteOut removes what layers below have: one name, or all in a directory.
func (t *layerTree) whiteOut(parent *erofs.Node, name string) error {
	if name == opaqueName {
		t.removeOlder(parent)
		return nil
	}
	if strings.HasPrefix(name, auxiliaryName) {
		return nil
	}
	name = strings.TrimPrefix(name, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%w: a whiteout of %q", roost.Invalid, name)
	}
	t.removeOld(parent, name)
	return nil
}

// removeOlder removes what is in a directory, but for what the present layer made.
func (t *layerTree) removeOlder(dir *erofs.Node) {
	for name := range dir.Children {
		t.removeOld(dir, name)
	}
}

// removeOld removes a name unless the present layer made it, or something below it.
func (t *layerTree) removeOld(dir *erofs.Node, name string) {
	n := dir.Children[name]
	if n == nil {
		return
	}
	if n.IsDirectory() {
		t.removeOlder(n)
		if len(n.Children) > 0 {
			return
		}
	}
	if !t.fresh[dir][name] {
		delete(dir.Children, name)
	}
}
