package erofs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// BlockBytes is the size of a block.
const BlockBytes = 4096

// The numbers of the format.
const (
	superOffset   = 1024
	superBytes    = 128
	superMagic    = 0xe0f5e1e2
	blockBits     = 12
	hasChecksum   = 1 // of the superblock
	hasMtime      = 2
	inodeBytes    = 64 // of the extended form
	slotBytes     = 32 // the unit of inode numbers
	direntBytes   = 12
	formatPlain   = 1        // extended, contents in blocks
	formatInline  = 1 | 2<<1 // extended, contents behind the inode
	mostInline    = 2048     // bytes of a directory or target behind the inode
	firstInode    = 2 * slotBytes
	maxBlockCount = math.MaxUint32
)

// Writer writes one image: WriteData for each file, and Finish.
type Writer struct {
	out    io.WriterAt
	block  uint32 // the next one
	buffer []byte // whole blocks that are not written yet
	at     int64  // where buffer begins
	err    error
}

// NewWriter begins an image in an empty file.
func NewWriter(out io.WriterAt) *Writer {
	return &Writer{out: out, block: 1, at: BlockBytes, buffer: make([]byte, 0, 1<<20)}
}

// write appends bytes. They reach the file in pieces of a mebibyte.
func (w *Writer) write(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := copy(w.buffer[len(w.buffer):cap(w.buffer)], b)
		w.buffer, b = w.buffer[:len(w.buffer)+n], b[n:]
		if len(w.buffer) == cap(w.buffer) {
			w.flush()
		}
	}
}

func (w *Writer) flush() {
	if w.err == nil && len(w.buffer) > 0 {
		_, w.err = w.out.WriteAt(w.buffer, w.at)
		w.at += int64(len(w.buffer))
	}
	w.buffer = w.buffer[:0]
}

// pad fills the block up with zeros, and notes how many blocks size bytes took.
func (w *Writer) pad(size int64) {
	if rest := size % BlockBytes; rest != 0 {
		w.write(make([]byte, BlockBytes-rest))
	}
	blocks := (size + BlockBytes - 1) / BlockBytes
	if int64(w.block)+blocks > maxBlockCount && w.err == nil {
		w.err = errors.New("the image has too many blocks")
	}
	w.block += uint32(blocks)
}

// WriteData writes the contents of a file, which must have size bytes. It returns the
// Block of its node. After an error the image is of no use.
func (w *Writer) WriteData(r io.Reader, size int64) (block uint32, err error) {
	if size == 0 {
		return 0, nil
	}
	block = w.block
	for left := size; left > 0 && w.err == nil; {
		free := w.buffer[len(w.buffer):cap(w.buffer)]
		n, err := io.ReadFull(r, free[:min(int64(len(free)), left)])
		w.buffer = w.buffer[:len(w.buffer)+n]
		left -= int64(n)
		if err != nil {
			w.err = fmt.Errorf("%d of %d bytes are missing: %w", left, size, err)
		} else if len(w.buffer) == cap(w.buffer) {
			w.flush()
		}
	}
	w.pad(size)
	return block, w.err
}

// Finish writes the tree and the superblock.
func (w *Writer) Finish(root *Node) error {
	if !root.IsDirectory() {
		return errors.New("the root is no directory")
	}
	l := &inodeLayout{next: firstInode}
	if err := l.count(root, ""); err != nil {
		return err
	}
	if err := l.place(root, root); err != nil {
		return err
	}
	for _, n := range l.nodes { // now each inode has its number
		if n.IsDirectory() {
			n.writeDirectory(l.parents[n])
		}
		if len(n.blocks) > 0 {
			n.Block = w.block
			w.write(n.blocks)
			w.pad(int64(len(n.blocks)))
		}
	}
	inodeBlock := w.block
	at := uint64(0)
	for _, n := range l.nodes {
		w.write(make([]byte, n.offset-at))
		b := n.encode()
		w.write(b)
		at = n.offset + uint64(len(b))
	}
	w.pad(int64(at))
	w.flush()
	if w.err != nil {
		return w.err
	}
	super := superblock(root, inodeBlock, w.block, uint64(len(l.nodes)))
	_, err := w.out.WriteAt(super, 0)
	return err
}

// superblock returns block 0.
func superblock(root *Node, inodeBlock, blocks uint32, inodes uint64) []byte {
	all := make([]byte, BlockBytes)
	b := all[superOffset : superOffset+superBytes]
	le := binary.LittleEndian
	le.PutUint32(b[0:], superMagic)
	le.PutUint32(b[8:], hasChecksum|hasMtime)
	b[12] = blockBits
	le.PutUint16(b[14:], uint16(root.offset/slotBytes))
	le.PutUint64(b[16:], inodes)
	le.PutUint32(b[36:], blocks)
	le.PutUint32(b[40:], inodeBlock)
	// The kernel does not invert its CRC-32C at the end.
	le.PutUint32(b[4:], ^crc32.Checksum(all[superOffset:], crc32.MakeTable(crc32.Castagnoli)))
	return all
}
