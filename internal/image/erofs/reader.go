package erofs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/roost-batch/roost"
)

// File is a file of an image that Walk visits.
type File struct {
	Path  string // from the root, which is "."
	Node  *Node  // without children
	Inode uint64 // two files with one are hard links
	Links uint32

	image io.ReaderAt
}

// Contents returns the contents of a regular file.
func (f File) Contents() *io.SectionReader {
	return io.NewSectionReader(f.image, int64(f.Node.Block)*BlockBytes, f.Node.Size)
}

// Walk visits all files of an image, each directory before what is in it. It refuses what
// a Writer does not write: the kernel and others may then read the image, whoever made
// it. The contents of files are not looked at.
func Walk(image io.ReaderAt, size int64, visit func(File) error) error {
	w := &walk{image: image, size: size, visit: visit, directories: map[uint64]bool{}}
	first := make([]byte, BlockBytes)
	if err := w.readAt(first, 0); err != nil {
		return fmt.Errorf("superblock: %w", err)
	}
	le := binary.LittleEndian
	b := first[superOffset:]
	root, inodes, blocks, start := uint64(le.Uint16(b[14:])), le.Uint64(b[16:]), le.Uint32(b[36:]), le.Uint32(b[40:])
	want := superblock(&Node{offset: root * slotBytes}, start, blocks, inodes)
	if !bytes.Equal(first, want) || int64(blocks)*BlockBytes != size {
		return fmt.Errorf("%w: it is no image that Roost wrote", roost.Invalid)
	}
	w.inodes = int64(start) * BlockBytes
	n, err := w.inode(root)
	if err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if !n.node.IsDirectory() {
		return fmt.Errorf("root: %w: it is no directory", roost.Invalid)
	}
	return w.directory(".", root, root, n)
}

// walk is one walk through an image.
type walk struct {
	image       io.ReaderAt
	size        int64
	inodes      int64 // where they begin
	visit       func(File) error
	directories map[uint64]bool // that were visited
	window      []byte          // of the image, which was read last
	windowAt    int64
}

// diskInode is an inode as it is stored.
type diskInode struct {
	node   *Node
	links  uint32
	inline []byte // instead of blocks
}

// windowBytes is how much is read of an image at once.
const windowBytes = 64 << 10

// readAt reads a part of the image, which must be there.
func (w *walk) readAt(b []byte, at int64) error {
	if at < 0 || at > w.size-int64(len(b)) {
		return fmt.Errorf("%w: %d bytes at %d are not in the image, which has %d", roost.Invalid, len(b), at, w.size)
	}
	for len(b) > 0 {
		if at < w.windowAt || at >= w.windowAt+int64(len(w.window)) {
			w.windowAt = at / windowBytes * windowBytes
			w.window = resize(w.window, int(min(windowBytes, w.size-w.windowAt)))
			if n, err := w.image.ReadAt(w.window, w.windowAt); n < len(w.window) {
				w.window = nil
				return fmt.Errorf("read at %d: %w", w.windowAt, err)
			}
		}
		n := copy(b, w.window[at-w.windowAt:])
		b, at = b[n:], at+int64(n)
	}
	return nil
}

func resize(b []byte, size int) []byte {
	if cap(b) < size {
		return make([]byte, size)
	}
	return b[:size]
}

// inode reads an inode, and what is behind it.
func (w *walk) inode(number uint64) (n diskInode, err error) {
	if number > uint64(w.size/slotBytes) {
		return n, fmt.Errorf("%w: inode %d is not in the image", roost.Invalid, number)
	}
	at := w.inodes + int64(number)*slotBytes
	var b [inodeBytes]byte
	if err := w.readAt(b[:], at); err != nil {
		return n, err
	}
	le := binary.LittleEndian
	n.node = &Node{Mode: le.Uint16(b[4:]), UID: le.Uint32(b[24:]), GID: le.Uint32(b[28:]),
		Mtime: int64(le.Uint64(b[32:])), MtimeNs: le.Uint32(b[40:]), Size: int64(le.Uint64(b[8:])),
		Block: le.Uint32(b[16:])}
	n.links = le.Uint32(b[44:])
	format := le.Uint16(b[0:])
	xattrs := 0
	if count := int(le.Uint16(b[2:])); count > 0 {
		xattrs = xattrHeaderBytes + (count-1)*4
	}
	inline := int64(0)
	if format == formatInline {
		inline = n.node.Size
	}
	switch {
	case format != formatPlain && format != formatInline || le.Uint16(b[6:]) != 0 ||
		!bytes.Equal(b[48:], make([]byte, inodeBytes-48)):
		return n, fmt.Errorf("%w: inode %d has another form", roost.Invalid, number)
	case n.node.Size < 0 || xattrs > MaxXattrBytes || inline > mostInline || inline > 0 && n.node.Block != 0 ||
		at%BlockBytes+inodeBytes+int64(xattrs)+inline > BlockBytes:
		return n, fmt.Errorf("%w: inode %d is too large", roost.Invalid, number)
	case format == formatPlain && n.node.Size > w.size-int64(n.node.Block)*BlockBytes:
		return n, fmt.Errorf("%w: the contents of inode %d are not in the image", roost.Invalid, number)
	}
	behind := make([]byte, int64(xattrs)+inline)
	if err := w.readAt(behind, at+inodeBytes); err != nil {
		return n, err
	}
	if n.node.Xattrs, err = decodeXattrs(behind[:xattrs]); err != nil {
		return n, fmt.Errorf("inode %d: %w", number, err)
	}
	n.inline = behind[xattrs:]
	if err := w.readTarget(&n); err != nil {
		return n, fmt.Errorf("inode %d: %w", number, err)
	}
	return n, nil
}

// readTarget reads the target of a symbolic link, and checks what kind of file it is.
func (w *walk) readTarget(n *diskInode) error {
	if n.node.IsSymlink() {
		if n.node.Size > MaxTargetBytes {
			return fmt.Errorf("%w: a target of %d bytes", roost.Invalid, n.node.Size)
		}
		target, err := w.contents(n)
		if err != nil {
			return err
		}
		n.node.Target = string(target)
		if strings.Contains(n.node.Target, "\x00") {
			return fmt.Errorf("%w: the target %q", roost.Invalid, n.node.Target)
		}
	}
	if n.node.IsRegular() && len(n.inline) > 0 {
		return fmt.Errorf("%w: a file behind its inode", roost.Invalid)
	}
	if err := n.node.check(); err != nil {
		return fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	return nil
}

// contents reads what a directory or a symbolic link has.
func (w *walk) contents(n *diskInode) ([]byte, error) {
	if len(n.inline) > 0 {
		return n.inline, nil
	}
	b := make([]byte, n.node.Size)
	return b, w.readAt(b, int64(n.node.Block)*BlockBytes)
}

// decodeXattrs reads extended attributes that encodeXattrs wrote.
func decodeXattrs(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	wrong := fmt.Errorf("%w: its extended attributes have another form", roost.Invalid)
	all := map[string]string{}
	for rest := b[xattrHeaderBytes:]; len(rest) > 0; {
		if len(rest) < xattrEntryBytes {
			return nil, wrong
		}
		short, value := int(rest[0]), int(binary.LittleEndian.Uint16(rest[2:]))
		end := (xattrEntryBytes + short + value + 3) / 4 * 4
		if end > len(rest) {
			return nil, wrong
		}
		name := xattrPrefix + string(rest[xattrEntryBytes:xattrEntryBytes+short])
		all[name] = string(rest[xattrEntryBytes+short : xattrEntryBytes+short+value])
		rest = rest[end:]
	}
	if !bytes.Equal(encodeXattrs(all), b) {
		return nil, wrong
	}
	return all, nil
}
