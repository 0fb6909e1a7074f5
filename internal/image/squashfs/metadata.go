package squashfs

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// The numbers of metadata blocks.
const (
	metadataBytes    = 8192 // of a whole block
	metadataPlain    = 1 << 15
	maxCachedBlocks  = 512
	pointerBytes     = 8
	maxMetadataReads = 1 << 26 // bytes of one table or one listing
)

// metadataBlock is a metadata block that was read.
type metadataBlock struct {
	data []byte
	next int64 // where the next block is
}

// block returns the metadata block at a position. Those that were read last stay.
func (f *FileSystem) block(at int64) (metadataBlock, error) {
	if b, ok := f.metadata[at]; ok {
		return b, nil
	}
	var header [2]byte
	if err := f.readAt(header[:], at); err != nil {
		return metadataBlock{}, err
	}
	word := binary.LittleEndian.Uint16(header[:])
	size := int(word &^ metadataPlain)
	data, err := f.readBlock(at+2, size, word&metadataPlain == 0, nil, metadataBytes)
	if err != nil {
		return metadataBlock{}, err
	}
	if len(f.metadata) >= maxCachedBlocks {
		clear(f.metadata)
	}
	b := metadataBlock{data, at + 2 + int64(size)}
	f.metadata[at] = b
	return b, nil
}

// metadataReader reads what is in metadata blocks that follow one another.
type metadataReader struct {
	files  *FileSystem
	at     int64 // of the block
	offset int   // in it
}

// metadataAt returns a reader that begins at a reference. That is the position of a block
// behind the start of its table, and an offset in what is in the block.
func (f *FileSystem) metadataAt(table uint64, block int64, offset int) *metadataReader {
	return &metadataReader{f, int64(table) + block, offset}
}

// read fills b.
func (m *metadataReader) read(b []byte) error {
	for {
		block, err := m.files.block(m.at)
		if err != nil {
			return err
		}
		if m.offset > len(block.data) {
			return fmt.Errorf("%w: offset %d is not in the block at %d", roost.Invalid, m.offset, m.at)
		}
		n := copy(b, block.data[m.offset:])
		b = b[n:]
		m.offset += n
		if len(b) == 0 {
			return nil
		}
		if len(block.data) < metadataBytes {
			return fmt.Errorf("%w: what is in the block at %d ends too early", roost.Invalid, m.at)
		}
		m.at, m.offset = block.next, 0
	}
}

// bytes reads n bytes.
func (m *metadataReader) bytes(n int) ([]byte, error) {
	if n < 0 || n > maxMetadataReads {
		return nil, fmt.Errorf("%w: %d bytes of metadata", roost.Exhausted, n)
	}
	b := make([]byte, min(n, metadataBytes))
	if err := m.read(b); err != nil {
		return nil, err
	}
	for len(b) < n { // no memory for what is not there
		old := len(b)
		b = append(b, make([]byte, min(n-old, max(old, metadataBytes)))...)
		if err := m.read(b[old:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// decode reads a structure of fixed size.
func (m *metadataReader) decode(v any) error {
	b := make([]byte, binary.Size(v))
	if err := m.read(b); err != nil {
		return err
	}
	_, err := binary.Decode(b, binary.LittleEndian, v)
	return err
}

// readTable reads a table of count entries: a list of the positions of its blocks.
func (f *FileSystem) readTable(at uint64, count, entryBytes int64) ([]byte, error) {
	var all []byte
	for i := int64(0); int64(len(all)) < count*entryBytes; i++ {
		var pointer [pointerBytes]byte
		if err := f.readAt(pointer[:], int64(at)+i*pointerBytes); err != nil {
			return nil, err
		}
		b, err := f.block(int64(binary.LittleEndian.Uint64(pointer[:])))
		if err != nil {
			return nil, err
		}
		if want := min(count*entryBytes-int64(len(all)), metadataBytes); int64(len(b.data)) < want {
			return nil, fmt.Errorf("%w: a table has %d bytes in a block, and not %d", roost.Invalid, len(b.data), want)
		} else {
			all = append(all, b.data[:want]...)
		}
	}
	return all, nil
}

// tableEntry reads one entry of a table.
func (f *FileSystem) tableEntry(at uint64, index, entryBytes int64) ([]byte, error) {
	perBlock := metadataBytes / entryBytes
	var pointer [pointerBytes]byte
	if err := f.readAt(pointer[:], int64(at)+index/perBlock*pointerBytes); err != nil {
		return nil, err
	}
	b, err := f.block(int64(binary.LittleEndian.Uint64(pointer[:])))
	if err != nil {
		return nil, err
	}
	from := index % perBlock * entryBytes
	if from+entryBytes > int64(len(b.data)) {
		return nil, fmt.Errorf("%w: entry %d is not in its table", roost.Invalid, index)
	}
	return b.data[from : from+entryBytes], nil
}
