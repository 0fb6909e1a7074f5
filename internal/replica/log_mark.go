package replica

import (
	"encoding/binary"
	"path/filepath"
	"sync"

	"github.com/roost-batch/roost/internal/logmark"
)

// The mark of the log has the index of the last entry known to be on disk: package
// logmark. Before entries are removed, it is lowered and synced.

// markFile is the name of the mark in a replica's directory.
const markFile = "log.mark"

const (
	markMagic = "roostlog"
	markSize  = 8 + 8
)

// logMark is the mark of a log.
type logMark struct {
	mu              sync.Mutex
	file            *logmark.File
	lastWritten     uint64 // every entry up to this one was on disk
	checksummedFrom uint64 // from this entry on all have checksums; earlier ones are of an older release
	existed         bool   // the file existed
}

// openMark reads the mark of the replica in dir. A damaged mark counts as missing: the
// log is checked without it, and the mark is written again.
func openMark(dir string) (*logMark, error) {
	path := filepath.Join(dir, markFile)
	b, err := logmark.Read(path, markMagic, markSize)
	if err != nil {
		return nil, err
	}
	m := &logMark{}
	if b != nil {
		m.lastWritten, m.checksummedFrom, m.existed = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
	}
	m.file, err = logmark.Open(path, markMagic)
	return m, err
}

// writeMark writes the mark.
func (m *logMark) writeMark(last, first uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastWritten, m.checksummedFrom = last, first
	return m.file.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, last), first))
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
