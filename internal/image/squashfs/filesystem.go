package squashfs

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/roost-batch/roost"
)

// Compression is the way in which blocks are compressed.
type Compression uint16

// The compressions of the format.
const (
	Zlib Compression = 1
	LZMA Compression = 2
	LZO  Compression = 3
	XZ   Compression = 4
	LZ4  Compression = 5
	Zstd Compression = 6
)

// String returns the name of a compression, as mksquashfs(1) calls it.
func (c Compression) String() string {
	names := []string{"", "gzip", "lzma", "lzo", "xz", "lz4", "zstd"}
	if c == 0 || int(c) >= len(names) {
		return fmt.Sprintf("compression %d", uint16(c))
	}
	return names[c]
}

// Decompressor returns the contents of one compressed block, which are at most limit
// bytes. It may use the memory of buffer for them.
type Decompressor func(block, buffer []byte, limit int) ([]byte, error)

// The numbers of the format.
const (
	magic           = 0x73717368
	superBytes      = 96
	majorVersion    = 4
	minBlockLog     = 12
	maxBlockLog     = 20
	noFragment      = 0xffffffff
	noTable         = 0xffffffffffffffff
	uncompressedBit = 1 << 24 // in the size of a data block
)

// FileSystem is a file system. Its methods may not be called concurrently.
type FileSystem struct {
	source     io.ReaderAt
	size       int64
	decompress Decompressor
	blockSize  int64
	super      superblock

	metadata  map[int64]metadataBlock
	fragments fragmentCache
	ids       []uint32
	buffer    []byte // of compressed blocks
}

// superblock is what the file system says of itself.
type superblock struct {
	Magic, Inodes, Mtime, BlockSize, Fragments                            uint32
	Compression, BlockLog, Flags, IDs, Major, Minor                       uint16
	Root, Bytes, IDTable, XattrTable, InodeTable, DirTable, FragmentTable uint64
	ExportTable                                                           uint64
}

// Open opens the file system in the first size bytes of a source. choose returns the
// decompressor of a compression.
func Open(source io.ReaderAt, size int64, choose func(Compression) (Decompressor, error)) (*FileSystem, error) {
	f := &FileSystem{source: source, size: size, metadata: map[int64]metadataBlock{}}
	b := make([]byte, superBytes)
	if err := f.readAt(b, 0); err != nil {
		return nil, fmt.Errorf("superblock: %w", err)
	}
	s := &f.super
	if _, err := binary.Decode(b, binary.LittleEndian, s); err != nil {
		return nil, err
	}
	switch {
	case s.Magic != magic:
		return nil, fmt.Errorf("%w: it is no SquashFS file system", roost.Invalid)
	case s.Major != majorVersion || s.Minor != 0:
		return nil, fmt.Errorf("%w: it is of SquashFS %d.%d, and only 4.0 is read", roost.Invalid, s.Major, s.Minor)
	case s.BlockLog < minBlockLog || s.BlockLog > maxBlockLog || s.BlockSize != 1<<s.BlockLog:
		return nil, fmt.Errorf("%w: its blocks have %d bytes", roost.Invalid, s.BlockSize)
	case s.IDs == 0:
		return nil, fmt.Errorf("%w: it has no owners", roost.Invalid)
	}
	f.blockSize = int64(s.BlockSize)
	f.fragments.limit = fragmentCacheBytes / s.BlockSize
	var err error
	if f.decompress, err = choose(Compression(s.Compression)); err != nil {
		return nil, err
	}
	ids, err := f.readTable(s.IDTable, int64(s.IDs), 4)
	if err != nil {
		return nil, fmt.Errorf("owners: %w", err)
	}
	for at := 0; at < len(ids); at += 4 {
		f.ids = append(f.ids, binary.LittleEndian.Uint32(ids[at:]))
	}
	return f, nil
}

// readAt reads a part of the file system, which must be there.
func (f *FileSystem) readAt(b []byte, at int64) error {
	if at < 0 || at > f.size-int64(len(b)) {
		return fmt.Errorf("%w: %d bytes at %d are not in the file system, which has %d", roost.Invalid, len(b), at,
			f.size)
	}
	if n, err := f.source.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("read at %d: %w", at, err)
	}
	return nil
}

// readBlock reads a block, and decompresses it if it is compressed. The result has at
// most limit bytes.
func (f *FileSystem) readBlock(at int64, size int, compressed bool, buffer []byte, limit int) ([]byte, error) {
	if size > limit && !compressed || size > 2*limit {
		return nil, fmt.Errorf("%w: the block at %d has %d bytes", roost.Invalid, at, size)
	}
	if !compressed {
		b := buffer[:0]
		if cap(b) < size {
			b = make([]byte, 0, limit)
		}
		return b[:size], f.readAt(b[:size], at)
	}
	if cap(f.buffer) < size {
		f.buffer = make([]byte, max(size, 2*metadataBytes))
	}
	if err := f.readAt(f.buffer[:size], at); err != nil {
		return nil, err
	}
	b, err := f.decompress(f.buffer[:size], buffer, limit)
	if err == nil && len(b) > limit {
		err = fmt.Errorf("it has %d bytes, and %d is the most", len(b), limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the block at %d: %w", roost.Invalid, at, err)
	}
	return b, nil
}
