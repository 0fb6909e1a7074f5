package boltfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
)

// bbolt has two meta pages. If the newer one is damaged it silently uses the older, and
// the last transaction is lost. A file that was restored from a copy, or truncated to
// nothing, looks intact, too. So the number of the last transaction is also stored beside
// the file. It is written when the transaction is on disk, and not synced itself: after a
// loss of power it may be older than the file, and never newer.

// markSuffix is appended to the name of a file for the name of its mark.
const markSuffix = ".mark"

const markMagic = "roostmk1"

// commitMark is the number of the last acknowledged transaction of the file with an id.
type commitMark struct {
	id   [16]byte
	txid uint64
}

const markSize = 8 + 16 + 8 + 4

func (m *commitMark) encode() []byte {
	b := append([]byte(markMagic), m.id[:]...)
	b = binary.BigEndian.AppendUint64(b, m.txid)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

// readMark reads the mark of a file. It returns nil if there is none or it is damaged:
// the file is then checked without it, and it is written again.
func readMark(path string) (*commitMark, error) {
	b, err := os.ReadFile(path + markSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) != markSize || string(b[:8]) != markMagic ||
		binary.BigEndian.Uint32(b[markSize-4:]) != crc32.Checksum(b[:markSize-4], crcTable) {
		return nil, nil
	}
	return &commitMark{[16]byte(b[8:24]), binary.BigEndian.Uint64(b[24:])}, nil
}
