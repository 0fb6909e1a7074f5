package files

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// extentReader reads a file from one piece of data to the next. A file without holes, and any that is read for a caller who does not take
// them, is one piece.
type extentReader struct {
	file    *os.File
	at, end int64 // read so far; the present piece has data up to end
}

func newExtentReader(f *os.File, info fs.FileInfo, offset int64, holes bool) *extentReader {
	r := &extentReader{file: f, at: offset, end: math.MaxInt64}
	if holes && info.Sys().(*syscall.Stat_t).Blocks*blockSize < info.Size() {
		r.end = offset
	}
	return r
}

// next returns what follows: a hole of that length, and then data. Without either the file is at its end.
func (r *extentReader) next() (hole int64, data []byte, err error) {
	if r.at >= r.end {
		if hole, err = r.skip(); err != nil {
			return 0, nil, err
		}
	}
	data = make([]byte, min(ChunkSize, r.end-r.at))
	n, err := r.file.Read(data)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.at += int64(n)
	return hole, data[:n], err
}

// skip goes to the next piece of data, and returns how long the hole before it is.
func (r *extentReader) skip() (hole int64, err error) {
	start, err := r.file.Seek(r.at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // no data follows
		info, err := r.file.Stat()
		if err != nil {
			return 0, err
		}
		hole = max(0, info.Size()-r.at)
		r.at += hole
		r.end = r.at
	case err != nil: // the file system knows nothing of holes
		r.end = math.MaxInt64
	default:
		hole, r.at = start-r.at, start
		if r.end, err = r.file.Seek(start, unix.SEEK_HOLE); err != nil {
			r.end = math.MaxInt64
		}
	}
	_, err = r.file.Seek(r.at, io.SeekStart)
	return hole, err
}

// Where fewer than one byte in sparseBelow takes room, the pieces of data are counted, up to so many.
const (
	sparseBelow = 8
	maxExtents  = 100_000
)

// measure counts the data of a file that seems to be nearly all holes: there are file systems that do not say how much room a file takes.
func (e *Entry) measure(path string) {
	if e.Dir || e.Stored >= e.Size/sparseBelow {
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
