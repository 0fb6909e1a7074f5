package userfiles

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// extentReader reads a file from one piece of data to the next. A file without holes, or
// for a caller that does not accept holes, is one piece.
type extentReader struct {
	file        *os.File
	offset, end int64 // position so far; the present piece has data up to end
}

func newExtentReader(f *os.File, info fs.FileInfo, offset int64, holes bool) *extentReader {
	r := &extentReader{file: f, offset: offset, end: math.MaxInt64}
	if holes && info.Sys().(*syscall.Stat_t).Blocks*blockSize < info.Size() {
		r.end = offset
	}
	return r
}

// next returns the length of the next hole, and the data after it. Without either the
// file is at its end.
func (r *extentReader) next() (hole int64, data []byte, err error) {
	if r.offset >= r.end {
		if hole, err = r.nextExtent(); err != nil {
			return 0, nil, err
		}
	}
	data = make([]byte, min(ChunkSize, r.end-r.offset))
	n, err := r.file.Read(data)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.offset += int64(n)
	return hole, data[:n], err
}

// nextExtent advances to the next piece of data, and returns the length of the hole
// before it.
func (r *extentReader) nextExtent() (hole int64, err error) {
	start, err := r.file.Seek(r.offset, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // no data follows
		info, err := r.file.Stat()
		if err != nil {
			return 0, err
		}
		hole = max(0, info.Size()-r.offset)
		r.offset += hole
		r.end = r.offset
	case err != nil: // the file system does not report holes
		r.end = math.MaxInt64
	default:
		hole, r.offset = start-r.offset, start
		if r.end, err = r.file.Seek(start, unix.SEEK_HOLE); err != nil {
			r.end = math.MaxInt64
		}
	}
	_, err = r.file.Seek(r.offset, io.SeekStart)
	return hole, err
}

// If less than one byte in sparseThreshold takes room, the pieces of data are counted, up
// to a bound.
const (
	sparseThreshold = 8
	maxExtents      = 100_000
)

// measure counts the data of a file that seems to be almost all holes. Some file systems
// do not report how much room a file takes.
func (e *TransferEntry) measure(path string) {
	if e.Dir || e.Stored >= e.Size/sparseThreshold {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	stored, at := int64(0), int64(0)
	for range maxExtents {
		start, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			e.Stored = stored
			return
		}
		if err == nil {
			at, err = f.Seek(start, unix.SEEK_HOLE)
		}
		if err != nil {
			e.Stored = e.Size
			return
		}
		stored += at - start
	}
}
