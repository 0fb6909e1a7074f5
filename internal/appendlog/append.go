package appendlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// growth is the number of bytes by which a segment grows ahead of its entries. It is so
// large that the new size of the file is seldom written, and has room on a small disk.
const growth = 64 << 10

// maxBuffer bounds the buffer that is retained between two entries, in bytes.
const maxBuffer = 1 << 20

// Next returns the number of the next entry.
func (l *Log) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Write writes the next entry, which is not durable before Sync. If it fails, for want of
// room above all, it can be called again.
func (l *Log) Write(data []byte) error {
	l.buffer = appendEntry(l.buffer[:0], &l.id, l.next, data)
	at := l.end
	end := at + int64(len(l.buffer))
	whole := l.buffer
	if end > l.size {
		grown := (end + growth - 1) / growth * growth
		whole = append(whole, make([]byte, grown-end)...)
	}
	_, err := l.file.WriteAt(whole, at)
	if errors.Is(err, syscall.ENOSPC) && len(whole) > len(l.buffer) {
		whole = l.buffer // there may be room for the entry alone
		_, err = l.file.WriteAt(whole, at)
	}
	if cap(whole) <= maxBuffer {
		l.buffer = whole[:0]
	} else {
		l.buffer = nil
	}
	if err != nil {
		l.pending = 0
		return err
	}
	l.size, l.pending = max(l.size, at+int64(len(whole))), end
	return nil
}

// Sync makes the written entry durable, and returns its number. If it fails the entry has
// to be written again, because the kernel may have dropped it.
func (l *Log) Sync() (number uint64, err error) {
	if l.pending == 0 {
		return 0, fmt.Errorf("%s: sync without an entry", l.dir)
	}
	end := l.pending
	l.pending = 0
	if err := fdatasync(l.file); err != nil {
		return 0, err
	}
	number = l.addEntry(end)
	l.writeMark()
	return number, nil
}

// SyncLater adds the written entry to the log without making it durable, and returns its
// number. Flush makes all such entries durable at once. It is for an owner who has the
// entries elsewhere, too: after a loss of power the log may lack them, or be damaged.
func (l *Log) SyncLater() (number uint64, err error) {
	if l.pending == 0 {
		return 0, fmt.Errorf("%s: an entry to be synced later was not written", l.dir)
	}
	end := l.pending
	l.pending, l.unsynced = 0, true
	return l.addEntry(end), nil
}

// Flush makes the entries of SyncLater durable. If it fails the log is to be opened
// again, because the kernel may have dropped them.
func (l *Log) Flush() error {
	if !l.unsynced {
		return nil
	}
	if err := fdatasync(l.file); err != nil {
		return err
	}
	l.unsynced = false
	l.writeMark()
	return nil
}

// addEntry adds the entry that ends at an offset of the last segment.
func (l *Log) addEntry(end int64) (number uint64) {
	l.end = end
	l.mu.Lock()
	defer l.mu.Unlock()
	number = l.next
	l.next++
	l.segments[len(l.segments)-1].end = end
	return number
}

func fdatasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync "+f.Name(), err)
		}
	}
}

// BeginSegment lets the next entry begin a new segment, so that DropBefore can remove all
// entries before it.
func (l *Log) BeginSegment() error {
	if l.first == l.next {
		return nil
	}
	if err := l.Flush(); err != nil {
		return err
	}
	f, err := createSegment(l.dir, l.id, l.next)
	if err != nil {
		return err
	}
	old := l.file
	l.file, l.first, l.end, l.size, l.pending = f, l.next, headerSize, headerSize, 0
	l.mu.Lock()
	l.segments = append(l.segments, segment{l.next, headerSize})
	l.mu.Unlock()
	return old.Close()
}

// DropBefore removes the segments with only entries below number. After a crash some may
// still be there, and the next Open removes them.
func (l *Log) DropBefore(number uint64) error {
	l.mu.Lock()
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1].first <= number {
		n++
	}
	dropped := l.segments[:n:n]
	l.segments = append([]segment(nil), l.segments[n:]...)
	l.mu.Unlock()
	var err error
	for _, s := range dropped {
		err = errors.Join(err, os.Remove(segmentPath(l.dir, s.first)))
	}
	return err
}

// EachEntry calls f with each entry from number from to before to. All of them must be
// durable. Data is valid until f returns. It gives fs.ErrNotExist if DropBefore has
// removed such an entry.
func (l *Log) EachEntry(from, to uint64, f func(number uint64, data []byte) error) error {
	l.mu.Lock()
	segments, next := append([]segment(nil), l.segments...), l.next
	l.mu.Unlock()
	if from < segments[0].first {
		return fs.ErrNotExist
	}
	entry := func(number uint64, data []byte) error {
		if number >= to {
			return nil
		}
		return f(number, data)
	}
	for i, s := range segments {
		end := next
		if i+1 < len(segments) {
			end = segments[i+1].first
		}
		if end <= from || s.first == end || s.first >= to {
			continue
		}
		if err := l.eachInSegment(s, end, from, entry); err != nil {
			return err
		}
	}
	return nil
}

// eachInSegment calls f with the entries of a segment from number from on. The last of
// the segment is before number end.
func (l *Log) eachInSegment(s segment, end, from uint64, f func(number uint64, data []byte) error) error {
	path := segmentPath(l.dir, s.first)
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	b, err := syscall.Mmap(int(file.Fd()), 0, int(s.end), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer syscall.Munmap(b)
	scan := segmentScan{id: &l.id, b: b, at: headerSize, number: s.first, from: from, entry: f}
	if err := scan.intactEntries(); err != nil {
		return err
	}
	if scan.number != end {
		return fmt.Errorf("%s: entry %d has been damaged on disk; restart the daemon, which then says what to do", path,
			scan.number)
	}
	return nil
}
