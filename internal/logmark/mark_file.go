// Package logmark stores beside a log how far it was written. A log drops an unreadable
// end silently, as an incomplete write. After a crash that is right. If a disk has
// damaged acknowledged data, or somebody has restored an older copy, it is not. The mark
// distinguishes the two.
//
// A mark is written when the log is on disk, and is not synced itself: after a loss of
// power it may be too low, and never too high. A caller that removes the end of its log
// lowers the mark first, and syncs it.
package logmark

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"

	"github.com/roost-batch/roost/internal/checksum"
)

// MagicSize is the length of the word with which a mark begins, in bytes. The word names
// the kind of the log.
const MagicSize = 8

// File is the open mark of one log.
type File struct {
	file  *os.File
	magic string
}

// Open opens the mark at path for writing, and creates a missing one.
func Open(path, magic string) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{f, magic}, nil
}

// Read returns the body of the mark at path, which has size bytes. It returns nil if
// there is no mark or it is damaged: the log is then checked without it.
func Read(path, magic string, size int) (body []byte, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end := MagicSize + size
	if len(b) != end+checksum.Size || string(b[:MagicSize]) != magic ||
		binary.BigEndian.Uint32(b[end:]) != checksum.Of(b[:end]) {
		return nil, nil
	}
	return b[MagicSize:end], nil
}

// Write replaces the body of the mark.
func (m *File) Write(body []byte) error {
	b := append([]byte(m.magic), body...)
	_, err := m.file.WriteAt(binary.BigEndian.AppendUint32(b, checksum.Of(b)), 0)
	return err
}

// Sync forces the mark to the disk.
func (m *File) Sync() error { return m.file.Sync() }

// Close closes the file.
func (m *File) Close() error { return m.file.Close() }
