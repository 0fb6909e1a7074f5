package appendlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/checksum"
)

// ID identifies a log. A segment of another log, in the same directory by mistake, has
// another one.
type ID [16]byte

const (
	segmentMagic  = "roostseg"
	segmentFormat = 1
	headerSize    = 8 + 4 + 16 + 8 + checksum.Size
	entryHead     = 4 + checksum.Size + 8
	alignment     = 8
	segmentSuffix = ".log"
)

// segmentPath returns the path of the segment that begins with an entry.
func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
}

// segmentFirst parses the name of a segment.
func segmentFirst(name string) (first uint64, is bool) {
	digits, is := strings.CutSuffix(name, segmentSuffix)
	if !is || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil
}

func appendHeader(b []byte, id ID, first uint64) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(append(b, segmentMagic...), segmentFormat)
	b = binary.BigEndian.AppendUint64(append(b, id[:]...), first)
	return binary.BigEndian.AppendUint32(b, checksum.Of(b[start:]))
}

// headerProblem says what is wrong with the header of a segment. A segment of a later
// format gives an error instead.
func headerProblem(b []byte, id ID, first uint64) (problem string, err error) {
	if len(b) < headerSize {
		return fmt.Sprintf("it is cut to %d bytes", len(b)), nil
	}
	b = b[:headerSize]
	body, sum := b[:headerSize-checksum.Size], binary.BigEndian.Uint32(b[headerSize-checksum.Size:])
	switch {
	case string(b[:8]) != segmentMagic || sum != checksum.Of(body):
		return "its header is damaged", nil
	case binary.BigEndian.Uint32(b[8:]) != segmentFormat:
		return "", fmt.Errorf("%w: its format is %d, and this program knows %d: a newer version of Roost wrote it, "+
			"and is needed to read it", roost.BadConfig, binary.BigEndian.Uint32(b[8:]), segmentFormat)
	case !bytes.Equal(b[12:28], id[:]):
		return "it is of another log", nil
	case binary.BigEndian.Uint64(b[28:]) != first:
		return fmt.Sprintf("it is the segment that begins with entry %d", binary.BigEndian.Uint64(b[28:])), nil
	}
	return "", nil
}

// headerID returns the id in an intact header.
func headerID(b []byte) (id ID, whole bool) {
	if len(b) < headerSize || string(b[:8]) != segmentMagic ||
		binary.BigEndian.Uint32(b[headerSize-checksum.Size:]) != checksum.Of(b[:headerSize-checksum.Size]) {
		return id, false
	}
	return ID(b[12:28]), true
}

func aligned(n int) int { return (n + alignment - 1) / alignment * alignment }

// entrySize returns the number of bytes of an entry in a segment.
func entrySize(data int) int { return aligned(entryHead + data) }

func entryChecksum(id *ID, number uint64, data []byte) uint32 {
	head := binary.BigEndian.AppendUint64(append(make([]byte, 0, 32), id[:]...), number)
	return checksum.Of(binary.BigEndian.AppendUint32(head, uint32(len(data))), data)
}

func appendEntry(b []byte, id *ID, number uint64, data []byte) []byte {
	end := len(b) + entrySize(len(data))
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = binary.BigEndian.AppendUint32(b, entryChecksum(id, number, data))
	b = append(binary.BigEndian.AppendUint64(b, number), data...)
	return append(b, make([]byte, end-len(b))...)
}

// entryAt reads the head of an entry at the beginning of b. The extent is plausible, and
// the checksum is not verified. Data is not empty.
func entryAt(b []byte) (number uint64, data []byte, plausible bool) {
	if len(b) < entryHead {
		return 0, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n == 0 || n > uint64(len(b)-entryHead) {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(b[8:]), b[entryHead : entryHead+n : entryHead+n], true
}

// storedChecksum returns the checksum in the head of an entry.
func storedChecksum(b []byte) uint32 { return binary.BigEndian.Uint32(b[4:]) }

// correctFlippedBit finds the one flipped bit of an entry and returns its original data.
func correctFlippedBit(id *ID, number uint64, stored uint32, data []byte) (original []byte, found bool) {
	at, found := checksum.FlippedBit(stored^entryChecksum(id, number, data), len(data))
	if !found {
		return nil, false
	}
	original = bytes.Clone(data)
	if at >= 0 {
		original[at/8] ^= 1 << (at % 8)
	}
	return original, true
}
