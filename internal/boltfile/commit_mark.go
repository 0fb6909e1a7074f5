package boltfile

import (
	"encoding/binary"

	"github.com/roost-batch/roost/internal/logmark"
)

// bbolt has two meta pages. If the newer one is damaged it silently uses the older, and
// the last transaction is lost. A file that was restored from a copy, or truncated to
// nothing, looks intact, too. So the number of the last transaction is also stored in a
// mark beside the file: package logmark.

// markSuffix is appended to the name of a file for the name of its mark.
const markSuffix = ".mark"

const markMagic = "roostmk1"

// commitMark is the number of the last acknowledged transaction of the file with an id.
type commitMark struct {
	id   [16]byte
	txid uint64
}

const markSize = 16 + 8

func (m *commitMark) encode() []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), m.id[:]...), m.txid)
}

// readMark reads the mark of a file. It returns nil if there is none or it is damaged:
// the file is then checked without it, and it is written again.
func readMark(path string) (*commitMark, error) {
	b, err := logmark.Read(path+markSuffix, markMagic, markSize)
	if b == nil || err != nil {
		return nil, err
	}
	return &commitMark{[16]byte(b), binary.BigEndian.Uint64(b[16:])}, nil
}
