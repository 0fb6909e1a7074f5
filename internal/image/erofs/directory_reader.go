package erofs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// maxDepth bounds how deep directories are in directories.
const maxDepth = 4096

// maxDirectory is the most bytes of one directory.
const maxDirectory = 1 << 30

// entry is a name in a directory.
type entry struct {
	name  string
	inode uint64
	kind  byte
}

// directory visits a directory, and all that is in it.
func (w *walk) directory(path string, number, parent uint64, n diskInode) error {
	if w.directories[number] || strings.Count(path, "/") > maxDepth {
		return fmt.Errorf("%.300q: %w: the directory is in itself, or has two names", path, roost.Invalid)
	}
	w.directories[number] = true
	if err := w.visit(File{path, n.node, number, n.links, w.image}); err != nil {
		return err
	}
	entries, err := w.entries(n, number, parent)
	if err != nil {
		return fmt.Errorf("%.300q: %w", path, err)
	}
	for _, e := range entries {
		child := e.name
		if path != "." {
			child = path + "/" + e.name
		}
		n, err := w.inode(e.inode)
		if err != nil {
			return fmt.Errorf("%.300q: %w", child, err)
		}
		switch {
		case direntType(n.node) != e.kind:
			return fmt.Errorf("%.300q: %w: it is of another kind than its directory says", child, roost.Invalid)
		case n.node.IsDirectory():
			err = w.directory(child, e.inode, number, n)
		default:
			err = w.visit(File{child, n.node, e.inode, n.links, w.image})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries lists a directory, without itself and its parent.
func (w *walk) entries(n diskInode, number, parent uint64) (list []entry, err error) {
	if n.node.Size > maxDirectory {
		return nil, fmt.Errorf("%w: it has %d bytes", roost.Exhausted, n.node.Size)
	}
	b, err := w.contents(&n)
	if err != nil {
		return nil, err
	}
	last, own := "", 0
	for len(b) > 0 {
		block := b[:min(len(b), BlockBytes)]
		b = b[len(block):]
		entries, err := blockEntries(block)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.name <= last {
				return nil, fmt.Errorf("%w: its names are not in order", roost.Invalid)
			}
			switch last = e.name; {
			case e.name == "." && e.inode == number && e.kind == direntDirectory,
				e.name == ".." && e.inode == parent && e.kind == direntDirectory:
				own++
			case e.name == "." || e.name == ".." || len(e.name) > MaxNameBytes || strings.ContainsAny(e.name, "/\x00"):
				return nil, fmt.Errorf("%w: it has the name %.300q", roost.Invalid, e.name)
			default:
				list = append(list, e)
			}
		}
	}
	if own != 2 {
		return nil, fmt.Errorf("%w: it lacks itself or its parent", roost.Invalid)
	}
	return list, nil
}

// blockEntries reads one block of a directory.
func blockEntries(b []byte) (list []entry, err error) {
	wrong := fmt.Errorf("%w: a block of it has another form", roost.Invalid)
	le := binary.LittleEndian
	if len(b) < direntBytes {
		return nil, wrong
	}
	names := int(le.Uint16(b[8:]))
	if names < direntBytes || names%direntBytes != 0 || names >= len(b) {
		return nil, wrong
	}
	at := names
	for i := 0; i < names; i += direntBytes {
		end := names + len(strings.TrimRight(string(b[names:]), "\x00")) // zeros fill a block
		if i+direntBytes < names {
			end = int(le.Uint16(b[i+direntBytes+8:]))
		}
		if int(le.Uint16(b[i+8:])) != at || end <= at || end > len(b) || b[i+11] != 0 {
			return nil, wrong
		}
		list = append(list, entry{string(b[at:end]), le.Uint64(b[i:]), b[i+10]})
		at = end
	}
	return list, nil
}
