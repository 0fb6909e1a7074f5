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

// The log takes an end that it cannot read for a write that was cut short, and drops it
// without a word: after a crash that is right, and where a disk has damaged what was
// acknowledged it is not. The mark tells the two apart: beside the log, it has the index
// of the last entry that is known to be there. It is written when an entry is on disk,
// and not forced there; after a loss of power it may be too low. It is never too high:
// before entries are taken out, it is lowered, and that is forced.

// markFile is where the mark lies in a replica's directory.
const markFile = "log.mark"

const (
	markMagic = "roostlog"
	markSize  = 8 + 8 + 8 + 4
)

// logMark is what is known of a log beside the log.
type logMark struct {
	mu              sync.Mutex
	file            *os.File
	lastWritten     uint64 // every entry up to this one was on disk
	checksummedFrom uint64 // from this one on all have checksums; those before are of an older release
	existed         bool   // it was there
}

// openMark reads the mark of the replica in dir. One that is damaged counts for one that
// is not there: the log is checked without it, and it is written anew.
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

// checksumOf is that of pieces behind one another.
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

// raiseLast tells that entries up to that one are on disk.
func (m *logMark) raiseLast(last uint64) error { return m.writeMark(last, m.checksummedFrom) }

// lowerLast tells that entries are taken out from now on: the last will be this one, 0 if
// none is left.
func (m *logMark) lowerLast(last uint64) error {
	if err := m.writeMark(last, min(m.checksummedFrom, last+1)); err != nil {
		return err
	}
	return m.file.Sync()
}

func (m *logMark) close() error { return m.file.Close() }
