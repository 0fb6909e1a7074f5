package squashfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/roost-batch/roost"
)

// contentsReader reads a file.
type contentsReader struct {
	files *FileSystem
	inode *Inode
	next  int    // the next block
	at    int64  // where it is
	left  int64  // bytes of the file that were not read from blocks
	data  []byte // of the present block
	block []byte // memory for it
}

// Contents returns the contents of a regular file. Blocks that are not stored are zeros.
func (f *FileSystem) Contents(n *Inode) (io.Reader, error) {
	if n.Type != Regular {
		return nil, errors.New("squashfs: it is no regular file")
	}
	return &contentsReader{files: f, inode: n, at: n.start, left: n.Size}, nil
}

// Read implements io.Reader.
func (c *contentsReader) Read(b []byte) (int, error) {
	for len(c.data) == 0 {
		if c.left == 0 {
			return 0, io.EOF
		}
		if err := c.nextBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *contentsReader) nextBlock() (err error) {
	f, n := c.files, c.inode
	want := min(c.left, f.blockSize)
	if c.next == len(n.blocks) { // the rest is in a fragment
		all, err := f.readFragment(n.fragment)
		if err != nil {
			return fmt.Errorf("fragment: %w", err)
		}
		if int64(n.offset)+want > int64(len(all)) {
			return fmt.Errorf("fragment: %w: it has %d bytes, and not %d at %d", roost.Invalid, len(all), want,
				n.offset)
		}
		c.data = all[n.offset : int64(n.offset)+want]
		c.left -= want
		return nil
	}
	word := n.blocks[c.next]
	size := int(word &^ uncompressedBit)
	if size == 0 {
		c.data = resize(c.block, int(want))
		clear(c.data)
	} else if c.data, err = f.readBlock(c.at, size, word&uncompressedBit == 0, c.block, int(f.blockSize)); err != nil {
		return err
	}
	if int64(len(c.data)) != want {
		return fmt.Errorf("%w: a block has %d bytes, and not %d", roost.Invalid, len(c.data), want)
	}
	c.block = c.data
	c.next++
	c.at += int64(size)
	c.left -= want
	return nil
}

func resize(b []byte, size int) []byte {
	if cap(b) < size {
		return make([]byte, size)
	}
	return b[:size]
}

// fragmentCacheBytes is how many bytes of fragments stay in memory.
const fragmentCacheBytes = 8 << 20

// fragmentCache has the fragments that were read last.
type fragmentCache struct {
	limit uint32
	data  map[uint32][]byte
}

const fragmentEntryBytes = 16

// readFragment returns a block that has the ends of several files.
func (f *FileSystem) readFragment(number uint32) ([]byte, error) {
	if b, ok := f.fragments.data[number]; ok {
		return b, nil
	}
	if number >= f.super.Fragments {
		return nil, fmt.Errorf("%w: number %d of %d", roost.Invalid, number, f.super.Fragments)
	}
	entry, err := f.tableEntry(f.super.FragmentTable, int64(number), fragmentEntryBytes)
	if err != nil {
		return nil, err
	}
	word := binary.LittleEndian.Uint32(entry[8:])
	b, err := f.readBlock(int64(binary.LittleEndian.Uint64(entry)), int(word&^uncompressedBit),
		word&uncompressedBit == 0, nil, int(f.blockSize))
	if err != nil {
		return nil, err
	}
	if f.fragments.data == nil || uint32(len(f.fragments.data)) >= f.fragments.limit {
		f.fragments.data = map[uint32][]byte{}
	}
	f.fragments.data[number] = b
	return b, nil
}
