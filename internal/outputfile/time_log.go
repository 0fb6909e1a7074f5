package outputfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/atomicfile"
)

// TimesSuffix ends the name of the file with the time marks of a stream, beside the file
// of the stream.
const TimesSuffix = ".times"

// TimeLog stores when a file was written that grows. One goroutine uses it.
type TimeLog struct {
	marks  TimeMarks
	loaded bool
	stored int // records in the file of the marks
}

// Record looks at the file at path, and marks how long it is if it has grown. It is for
// about once a second.
func (l *TimeLog) Record(path string, now time.Time) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if !l.loaded {
		if l.marks, l.stored, err = readTimeMarks(path); err != nil {
			return err
		}
		l.loaded = true
	}
	before, end := len(l.marks), l.marks.end()
	l.marks = l.marks.add(markOf(info, now))
	switch stored := l.stored; {
	case l.marks.end() == end && stored == before:
		return nil
	case len(l.marks) == before+1 && stored == before && len(l.marks) <= maxMarks:
		err = appendRecord(path+TimesSuffix, appendMark(nil, l.marks[before]))
	default:
		l.marks = l.marks.thin()
		err = atomicfile.Write(path+TimesSuffix, l.marks.Encode(), 0o600)
	}
	if l.stored = len(l.marks); err != nil {
		l.stored = -1 // part of a record may be there: all are written again
	}
	return err
}

// markOf is the mark for what a file is now. It was last written when it was last
// modified, unless whoever writes it says something else.
func markOf(info fs.FileInfo, now time.Time) TimeMark {
	return TimeMark{min(info.ModTime().UnixMilli(), now.UnixMilli()), info.Size()}
}

// appendRecord adds a record to a file of a directory of ours.
func appendRecord(path string, record []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(record)
	return errors.Join(err, f.Close())
}

// readTimeMarks reads the marks of the stream at path. It returns how many records they
// are there: -1 if some are damaged.
func readTimeMarks(path string) (m TimeMarks, records int, err error) {
	b, err := os.ReadFile(path + TimesSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	m = DecodeTimeMarks(b)
	if len(m)*markRecord != len(b) {
		return m, -1, nil
	}
	return m, len(m), nil
}

// ReadTimeMarks returns the marks of a stream that is written, or was, at path. The last
// one is for its present end.
func ReadTimeMarks(path string, now time.Time) (TimeMarks, error) {
	m, _, err := readTimeMarks(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	return m.add(markOf(info, now)), nil
}
