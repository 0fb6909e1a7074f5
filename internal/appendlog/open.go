package appendlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/logmark"
)

const (
	markSuffix = ".mark"
	markMagic  = "roostmk2"
	markSize   = 16 + 8
	newSuffix  = ".new"
)

// Log is an open log. One goroutine calls Write, Sync, SyncLater, Flush, BeginSegment and
// Close. Any goroutine may call DropBefore and EachEntry.
type Log struct {
	dir  string
	id   ID
	mark *logmark.File

	// of the goroutine that writes
	file     *os.File // the last segment
	first    uint64   // number of its first entry
	end      int64    // end of its last entry
	size     int64    // of the file, as far as zeros are written
	pending  int64    // end of the written entry that is not in the log yet; 0: there is none
	unsynced bool     // entries since the last Flush are in the log, and may not be durable
	buffer   []byte

	mu       sync.Mutex
	segments []segment // oldest first
	next     uint64    // number of the next entry
}

// segment is one file of the log.
type segment struct {
	first uint64 // number of its first entry
	end   int64  // end of its last entry
}

// DamageError means that the log is damaged.
type DamageError struct {
	Dir      string
	Findings []Finding
}

// Error names the first of the damages.
func (e *DamageError) Error() string {
	f := e.Findings[0]
	return fmt.Sprintf("%s: entry %d: %s; %d places are damaged", e.Dir, f.First, f.Reason, len(e.Findings))
}

// Prepare creates the beginning of a log, or of one that replaces the log in dir. The
// first entry has the number first. It is on disk on return. It replaces what is in dir
// when [Open] is called with this number.
func Prepare(dir string, id ID, first uint64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := prepareSegment(dir, id, first)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), atomicfile.SyncDir(dir), atomicfile.SyncDir(filepath.Dir(dir)))
}

// prepareSegment creates an empty segment, which does not have its name yet.
func prepareSegment(dir string, id ID, first uint64) (*os.File, error) {
	path := segmentPath(dir, first) + newSuffix
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(appendHeader(nil, id, first))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		os.Remove(path)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isPrepared reports whether Prepare has created the segment that begins with an entry.
// It is false when the segment has its name.
func isPrepared(dir string, id *ID, first uint64) bool {
	b, err := os.ReadFile(segmentPath(dir, first) + newSuffix)
	return err == nil && bytes.Equal(b, appendHeader(nil, *id, first))
}

// nameSegment gives a prepared segment its name, durably.
func nameSegment(dir string, first uint64) error {
	path := segmentPath(dir, first)
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// createSegment creates an empty segment. Its name appears when its header is on disk.
func createSegment(dir string, id ID, first uint64) (*os.File, error) {
	f, err := prepareSegment(dir, id, first)
	if err != nil {
		return nil, err
	}
	if err := nameSegment(dir, first); err != nil {
		os.Remove(segmentPath(dir, first) + newSuffix)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Open opens a log, and calls entry with each entry from number from on. Data is valid
// until entry returns. A damaged log gives a DamageError; entry may have been called with
// some of its entries. The caller excludes other processes.
func Open(dir string, id ID, from uint64, entry func(number uint64, data []byte) error) (*Log, error) {
	if isPrepared(dir, &id, from) {
		if err := nameSegment(dir, from); err != nil {
			return nil, err
		}
		if err := removeSegments(dir, func(first uint64) bool { return first > from }); err != nil {
			return nil, err
		}
	}
	r, err := readLog(dir, &id, from, true, entry)
	if err != nil {
		return nil, err
	}
	if len(r.findings) > 0 {
		return nil, &DamageError{dir, r.findings}
	}
	l := &Log{dir: dir, id: id, next: r.next}
	for _, s := range r.segments {
		l.segments = append(l.segments, segment{s.first, s.end})
	}
	if err := l.openFiles(r.torn); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// openFiles opens the last segment and the mark. torn: the segment has an incomplete
// entry, which is cut off.
func (l *Log) openFiles(torn bool) (err error) {
	last := l.segments[len(l.segments)-1]
	l.first, l.end = last.first, last.end
	if l.file, err = os.OpenFile(segmentPath(l.dir, last.first), os.O_RDWR, 0o600); err != nil {
		return err
	}
	if torn {
		if err := l.file.Truncate(last.end); err != nil {
			return err
		}
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	l.size = info.Size()
	if l.mark, err = logmark.Open(l.dir+markSuffix, markMagic); err != nil {
		return err
	}
	l.writeMark()
	names, err := filepath.Glob(filepath.Join(l.dir, "*"+newSuffix))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	// those before the log, which DropBefore had no time to remove
	return errors.Join(err, removeSegments(l.dir, func(first uint64) bool { return first < l.segments[0].first }))
}

// removeSegments removes the segments whose first entries are chosen.
func removeSegments(dir string, isChosen func(first uint64) bool) error {
	firsts, err := listSegments(dir)
	for _, first := range firsts {
		if isChosen(first) {
			err = errors.Join(err, os.Remove(segmentPath(dir, first)))
		}
	}
	return err
}

// writeMark writes the mark. It may be too low: then the loss of the last entries may go
// unnoticed. So an error does not matter to the entries, which are on disk.
func (l *Log) writeMark() { l.mark.Write(binary.BigEndian.AppendUint64(l.id[:16:16], l.next)) }

// Close closes the files.
func (l *Log) Close() (err error) {
	if l.file != nil {
		err = l.file.Close()
	}
	if l.mark != nil {
		err = errors.Join(err, l.mark.Close())
	}
	return err
}

// FirstEntry returns the number of the first entry that the log in dir may have. There is
// no log if found is false. A caller who knows what the first entry must be passes that
// to [Open] instead: then it is noticed if the beginning of the log is gone.
func FirstEntry(dir string) (first uint64, found bool, err error) {
	firsts, err := listSegments(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil || len(firsts) == 0 {
		return 0, false, err
	}
	return firsts[0], true, nil
}

// MarkPath returns the path of the mark of the log in dir.
func MarkPath(dir string) string { return dir + markSuffix }

// listSegments lists the numbers of the first entries of all segments, in order.
func listSegments(dir string) (firsts []uint64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if first, is := segmentFirst(f.Name()); is {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// logContents is the result of reading a log.
type logContents struct {
	segments []segment // those with entries from the first wanted one on
	next     uint64    // number after the last entry, also after those that are lost
	findings []Finding
	torn     bool // the last segment ends with an incomplete entry
}

// readLog reads a log and calls entry with each intact entry from number from on. With
// untilDamage it passes over those that follow a damage.
func readLog(dir string, id *ID, from uint64, untilDamage bool,
	entry func(uint64, []byte) error) (r *logContents, err error) {
	r = &logContents{next: from}
	if isPrepared(dir, id, from) {
		r.segments = []segment{{from, headerSize}}
		return r, nil
	}
	acknowledged := uint64(0)
	mark, err := logmark.Read(dir+markSuffix, markMagic, markSize)
	if err != nil {
		return nil, err
	}
	if mark != nil && ID(mark) == *id {
		acknowledged = binary.BigEndian.Uint64(mark[16:])
	}
	firsts, err := listSegments(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for len(firsts) > 1 && firsts[1] <= from {
		firsts = firsts[1:]
	}
	switch {
	case len(firsts) == 0:
		r.next = max(from, acknowledged)
		r.findings = []Finding{{First: from, Last: max(from, r.next-1), Reason: "the log is gone"}}
		return r, nil
	case firsts[0] > from:
		r.findings = []Finding{{First: from, Last: firsts[0] - 1, Reason: "gone from the beginning of the log"}}
	}
	for i, first := range firsts {
		promised := max(acknowledged, first)
		if i+1 < len(firsts) {
			promised = firsts[i+1]
		}
		s := &segmentScan{id: id, path: segmentPath(dir, first), from: from, entry: entry, untilDamage: untilDamage,
			findings: r.findings}
		if err := s.readFile(first, promised); err != nil {
			return nil, err
		}
		if s.number > promised && i+1 < len(firsts) {
			s.addFinding(Finding{First: promised, Last: s.number - 1, Reason: "in two segments"})
		}
		r.segments = append(r.segments, segment{first, int64(s.at)})
		r.findings, r.next, r.torn = s.findings, max(from, s.number), s.torn
	}
	return r, nil
}

// readFile scans a segment's file.
func (s *segmentScan) readFile(first, acknowledged uint64) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		s.b, err = syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		defer syscall.Munmap(s.b)
	}
	err = s.scan(first, acknowledged)
	if err == nil && s.at < len(s.b) {
		s.torn = len(s.tail()) > 0
	}
	s.b = nil
	return err
}

// IsEmpty reports whether a directory has no entries of any log.
func IsEmpty(dir string) (bool, error) {
	firsts, err := listSegments(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	for _, first := range firsts {
		b, err := os.ReadFile(segmentPath(dir, first))
		if err != nil || len(bytes.TrimRight(b, "\x00")) > headerSize {
			return false, err
		}
	}
	return true, err
}

// Inspect reads a log that no daemon has open, and returns its damages. It calls entry
// with each intact entry from number from on. next is a number above all that the log has
// had. If the id is unknown, nil, it is taken from the log itself.
func Inspect(dir string, id *ID, from uint64, entry func(number uint64, data []byte) error) (next uint64,
	findings []Finding, err error) {
	if id == nil {
		known, err := findID(dir)
		if err != nil {
			return 0, nil, err
		}
		id = &known
	}
	r, err := readLog(dir, id, from, false, entry)
	if err != nil {
		return 0, nil, err
	}
	return r.next, r.findings, nil
}

// findID returns the id in the newest segment with an intact header.
func findID(dir string) (id ID, err error) {
	firsts, err := listSegments(dir)
	for _, first := range slices.Backward(firsts) {
		f, err := os.Open(segmentPath(dir, first))
		if err != nil {
			return id, err
		}
		b := make([]byte, headerSize)
		n, _ := f.ReadAt(b, 0)
		f.Close()
		if known, whole := headerID(b[:n]); whole {
			return known, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return id, err
}
