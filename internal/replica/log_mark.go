package replica

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// The log takes an unreadable end for an incomplete write, and drops it silently. After a
// crash that is right, and if a disk has damaged acknowledged data it is not. The mark
// distinguishes the two: beside the log, it has the index of the last entry known to be
// there. It is written when an entry is on disk, and not synced; after a loss of power it
// may be too low. It is never too high: before entries are removed, it is lowered and
// synced.

// markFile is the name of the mark in a replica's directory.
const markFile = "log.mark"

const (
	markMagic = "roostlog"
	markSize  = 8 + 8 + 8 + 4
)

// logMark is the mark of a log.
type logMark struct {
	mu              sync.Mutex
	file            *os.File
	lastWritten     uint64 // every entry up to this one was on disk
	checksummedFrom uint64 // from this entry on all have checksums; earlier ones are of an older release
	existed         bool   // the file existed
}

// openMark reads the mark of the replica in dir. A damaged mark counts as missing: the
// log is checked without it, and the mark is written again.
func openMark(dir string) (*logMark, error) {
	path := filepath.Join(dir, markFile)
	m := &logMark{}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(b) == markSize && string(b[:8]) == markMagic &&
		binary.BigEndian.Uint32(b[markSize-4:]) == checksum(b[:markSize-4]) {
		m.lastWritten, m.checksummedFrom, m.existed = binary.BigEndian.Uint64(b[8:]),
			binary.BigEndian.Uint64(b[16:]), true
	}
	m.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	return m, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// checksumOf returns the checksum of concatenated pieces.
func checksumOf(pieces ...[]byte) (sum uint32) {
	for _, b := range pieces {
		sum = crc32.Update(sum, castagnoli, b)
	}
	return sum
}

// writeMark writes the mark.
func (m *logMark) writeMark(last, first uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := append([]byte(markMagic), make([]byte, 16, markSize)...)
	binary.BigEndian.PutUint64(b[8:], last)
	binary.BigEndian.PutUint64(b[16:], first)
	m.lastWritten, m.checksummedFrom = last, first
	_, err := m.file.WriteAt(binary.BigEndian.AppendUint32(b, checksum(b)), 0)
	return err
}

// raiseLast records that entries up to last are on disk.
func (m *logMark) raiseLast(last uint64) error { return m.writeMark(last, m.checksummedFrom) }

// lowerLast records, before entries are removed, that last will be the last one, 0 for
// none.
func (m *logMark) lowerLast(last uint64) error {
	if err := m.writeMark(last, min(m.checksummedFrom, last+1)); err != nil {
		return err
	}
	return m.file.Sync()
}

func (m *logMark) close() error { return m.file.Close() }
