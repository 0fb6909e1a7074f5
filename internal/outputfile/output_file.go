// Package outputfile bounds files that programs append to for as long as they run.
//
// The usual ways to rotate a log do not fit what a task writes. To rename the file needs
// a program that opens it again, and tasks write to descriptors that they were given. To
// copy and truncate it loses what comes between the two. A process that pumps a pipe into
// files loses nothing, but costs each task a copy, and whoever kills the pump kills the
// task. Trim leaves the file and its writers alone and gives the oldest blocks back to
// the file system: they become a hole. Each byte keeps its offset, so who follows the
// file by offsets notices nothing, and the file may grow as large as its file system
// allows (16 TiB on ext4).
//
//	0            DataStart                size
//	├─── hole ───┼──────── lines ─────────┤
package outputfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Bounds are how much of a file stays on disk. That is at most Size times Files, and at
// least Size times Files-1. The zero value bounds nothing.
type Bounds struct {
	Size  roost.Bytes // that is given back at once
	Files int         // 2 or more
}

// Total returns the most that stays on disk.
func (b Bounds) Total() roost.Bytes { return b.Size * roost.Bytes(b.Files) }

// longestLine is how long a line may be, in bytes, that is never cut in two.
const longestLine = 64 << 10

// blockUnit is the unit of st_blocks (stat(2)).
const blockUnit = 512

// Trim gives the oldest lines of a file back to the file system if it has too much on
// disk. It reports whether it had. Programs may append to it meanwhile. A file system
// without holes is an error that wraps roost.Unavailable.
func Trim(path string, b Bounds) (trimmed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() < int64(b.Total()) {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if st.Blocks*blockUnit <= int64(b.Total()) {
		return false, nil
	}
	cut := lineStart(f, st.Size-int64(b.Total()-b.Size))
	if cut <= 0 {
		return false, nil // what it has too much is not before its end
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, cut)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, fmt.Errorf("%s: %w: its file system makes no holes", path, roost.Unavailable)
	}
	if err != nil {
		return false, fmt.Errorf("%s: make a hole: %w", path, err)
	}
	return true, nil
}

// lineStart returns the first place at or behind an offset where a line begins. The
// offset itself is one if the line there is too long.
func lineStart(f io.ReaderAt, at int64) int64 {
	if at <= 0 {
		return 0
	}
	text := make([]byte, longestLine)
	n, _ := f.ReadAt(text, at-1)
	if i := bytes.IndexByte(text[:n], '\n'); i >= 0 {
		return at + int64(i)
	}
	return at
}

// DataStart returns where the first line of a file begins that is still on disk. It moves
// the file's offset.
func DataStart(f *os.File) (int64, error) {
	at, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // there is none
		return f.Seek(0, io.SeekEnd)
	case errors.Is(err, unix.EINVAL), err == nil && at == 0: // the file system knows of no holes, or there is none
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	// the end of the hole was within a block, whose beginning is zeros now
	text := make([]byte, longestLine)
	n, err := f.ReadAt(text, at)
	if err != nil && err != io.EOF {
		return 0, err
	}
	return at + int64(n-len(bytes.TrimLeft(text[:n], "\x00"))), nil
}

// CopyData writes what is left of a file to a new one, and returns where that began in
// it. Of more than most bytes it leaves out the oldest.
func CopyData(to, from string, most int64) (start, size int64, err error) {
	f, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if start, err = DataStart(f); err != nil {
		return 0, 0, err
	}
	if least := info.Size() - most; start < least {
		start = lineStart(f, least)
	}
	start = min(start, info.Size())
	t, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, 0, err
	}
	size, err = io.Copy(t, io.NewSectionReader(f, start, info.Size()-start))
	return start, size, errors.Join(err, t.Close())
}
