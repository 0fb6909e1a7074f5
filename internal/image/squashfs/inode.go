package squashfs

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// Type is what kind of file an inode is.
type Type uint16

// The types of files.
const (
	Directory   Type = 1
	Regular     Type = 2
	Symlink     Type = 3
	BlockDevice Type = 4
	CharDevice  Type = 5
	Pipe        Type = 6
	Socket      Type = 7
	extended         = 7 // is added to the type of an inode that has more
)

// Ref names an inode: two names with one are hard links.
type Ref uint64

// Inode is a file.
type Inode struct {
	Type     Type
	Mode     uint16 // permissions
	UID, GID uint32
	Mtime    uint32 // unix seconds
	Links    uint32
	Size     int64             // bytes of a regular file
	Target   string            // of a symbolic link
	Xattrs   map[string]string // extended attributes

	start    int64    // of a file's blocks, or of a directory's listing
	offset   int      // of a directory's listing in its block, or of a file's end in its fragment
	listed   int      // bytes of a directory's listing
	fragment uint32   // with the end of a file
	blocks   []uint32 // sizes of a file's blocks
}

// maxTarget is the longest target of a symbolic link in bytes, as for the kernel.
const maxTarget = 65535

// Root returns the root directory.
func (f *FileSystem) Root() (*Inode, error) {
	n, err := f.Inode(Ref(f.super.Root))
	if err == nil && n.Type != Directory {
		err = fmt.Errorf("%w: the root is no directory", roost.Invalid)
	}
	return n, err
}

// Inode reads an inode.
func (f *FileSystem) Inode(r Ref) (*Inode, error) {
	m := f.metadataAt(f.super.InodeTable, int64(r>>16), int(r&0xffff))
	var h struct {
		Type, Mode, UID, GID uint16
		Mtime, Number        uint32
	}
	if err := m.decode(&h); err != nil {
		return nil, fmt.Errorf("inode: %w", err)
	}
	if int(h.UID) >= len(f.ids) || int(h.GID) >= len(f.ids) {
		return nil, fmt.Errorf("inode: %w: its owner is number %d of %d", roost.Invalid, max(h.UID, h.GID), len(f.ids))
	}
	n := &Inode{Type: Type(h.Type), Mode: h.Mode & 0o7777, UID: f.ids[h.UID], GID: f.ids[h.GID], Mtime: h.Mtime,
		fragment: noFragment}
	xattr := uint32(noXattrs)
	var err error
	if n.Type > extended {
		n.Type -= extended
		xattr, err = n.decodeExtended(f, m)
	} else {
		err = n.decodeBasic(f, m)
	}
	if err == nil && xattr != noXattrs {
		n.Xattrs, err = f.xattrs(xattr)
	}
	if err != nil {
		return nil, fmt.Errorf("inode: %w", err)
	}
	return n, nil
}

func (n *Inode) decodeBasic(f *FileSystem, m *metadataReader) error {
	switch n.Type {
	case Directory:
		var d struct {
			Start, Links uint32
			Size, Offset uint16
			Parent       uint32
		}
		err := m.decode(&d)
		n.start, n.Links, n.listed, n.offset = int64(d.Start), d.Links, int(d.Size), int(d.Offset)
		return err
	case Regular:
		var d struct{ Start, Fragment, Offset, Size uint32 }
		if err := m.decode(&d); err != nil {
			return err
		}
		n.start, n.fragment, n.offset, n.Size, n.Links = int64(d.Start), d.Fragment, int(d.Offset), int64(d.Size), 1
		return n.decodeBlocks(f, m)
	case Symlink:
		return n.decodeTarget(m)
	}
	return n.decodeSpecial(m)
}

// decodeExtended reads an inode that has more, and returns which extended attributes.
func (n *Inode) decodeExtended(f *FileSystem, m *metadataReader) (xattr uint32, err error) {
	switch n.Type {
	case Directory:
		var d struct {
			Links, Size, Start, Parent uint32
			Indexes, Offset            uint16
			Xattr                      uint32
		}
		err = m.decode(&d)
		n.start, n.Links, n.listed, n.offset = int64(d.Start), d.Links, int(d.Size), int(d.Offset)
		return d.Xattr, err
	case Regular:
		var d struct {
			Start, Size, Sparse            uint64
			Links, Fragment, Offset, Xattr uint32
		}
		if err := m.decode(&d); err != nil {
			return 0, err
		}
		if d.Start>>62 != 0 || d.Size>>62 != 0 {
			return 0, fmt.Errorf("%w: a file has %d bytes at %d", roost.Invalid, d.Size, d.Start)
		}
		n.start, n.fragment, n.offset, n.Size, n.Links = int64(d.Start), d.Fragment, int(d.Offset), int64(d.Size),
			d.Links
		return d.Xattr, n.decodeBlocks(f, m)
	case Symlink:
		err = n.decodeTarget(m)
	default:
		err = n.decodeSpecial(m)
	}
	if err != nil {
		return 0, err
	}
	err = m.decode(&xattr)
	return xattr, err
}

// decodeBlocks reads the sizes of a file's blocks. What is left of the file is in a
// fragment, if it has one.
func (n *Inode) decodeBlocks(f *FileSystem, m *metadataReader) error {
	count := n.Size / f.blockSize
	if n.fragment == noFragment && n.Size%f.blockSize != 0 {
		count++
	}
	if count > maxMetadataReads/4 {
		return fmt.Errorf("%w: a file has %v", roost.Exhausted, roost.Bytes(n.Size))
	}
	b, err := m.bytes(int(count) * 4)
	if err != nil {
		return err
	}
	n.blocks = make([]uint32, count)
	for i := range n.blocks {
		n.blocks[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return nil
}

func (n *Inode) decodeTarget(m *metadataReader) error {
	var d struct{ Links, Size uint32 }
	if err := m.decode(&d); err != nil {
		return err
	}
	if d.Size > maxTarget {
		return fmt.Errorf("%w: a symbolic link has a target of %d bytes", roost.Invalid, d.Size)
	}
	b, err := m.bytes(int(d.Size))
	n.Links, n.Target = d.Links, string(b)
	return err
}

func (n *Inode) decodeSpecial(m *metadataReader) error {
	switch n.Type {
	case BlockDevice, CharDevice:
		var d struct{ Links, Device uint32 }
		err := m.decode(&d)
		n.Links = d.Links
		return err
	case Pipe, Socket:
		return m.decode(&n.Links)
	}
	return fmt.Errorf("%w: no file has the type %d", roost.Invalid, n.Type)
}
