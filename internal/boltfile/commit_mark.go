package boltfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
)

// bbolt has two heads, and where the newer one is damaged it takes the older without a
// word: what was written last is gone. A file that was put back, or cut to nothing, looks
// whole, too. So the number of the last transaction is kept beside the file as well. It
// is written when the transaction is on disk, and not forced there itself: after a loss
// of power it may be older than the file, and never newer.

// markSuffix is behind the name of a file in the name of its mark.
const markSuffix = ".mark"

const markMagic = "roostmk1"

// commitMark is the number of the last transaction that was acknowledged, of the file
// with that id.
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

// readMark reads the mark of a file; nil where there is none, or it is damaged: the file
// is checked without it then, and it is written anew.
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
