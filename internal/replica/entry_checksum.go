package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost/internal/checksum"
)

// Each entry has a checksum of Roost's own, over all its fields and its index, so that an
// entry in the wrong place, or an old one, is detected like a flipped bit. It is a
// CRC-32C, which detects every error of up to three bits in an entry. It is stored in the
// extension field that raft has for wrappers of a log.

const (
	checksumVersion = 1
	checksumSize    = 1 + 4
)

// errDamaged means that the data on disk is not what was written.
var errDamaged = errors.New("its checksum is wrong")

// entryChecksum returns the checksum of an entry with the given extensions, which do not
// include it.
func entryChecksum(l *raft.Log, extensions []byte) uint32 {
	b := binary.BigEndian.AppendUint64(nil, l.Index)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	b = append(b, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, uint64(l.AppendedAt.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(len(l.Data)))
	return checksum.Of(b, l.Data, extensions)
}

// withChecksum returns an entry in its form on disk.
func withChecksum(l *raft.Log) *raft.Log {
	on := *l
	on.Extensions = append(append(make([]byte, 0, len(l.Extensions)+checksumSize), l.Extensions...), checksumVersion)
	on.Extensions = binary.BigEndian.AppendUint32(on.Extensions, entryChecksum(l, l.Extensions))
	return &on
}

// checkEntry verifies and removes the checksum of an entry read from disk. An entry of an
// older release has none; summed reports whether there was one.
func checkEntry(index uint64, l *raft.Log) (summed bool, err error) {
	if l.Index != index {
		return false, fmt.Errorf("entry %d: %w: entry %d is in its place", index, errDamaged, l.Index)
	}
	n := len(l.Extensions) - checksumSize
	if n < 0 {
		if len(l.Extensions) > 0 {
			return false, fmt.Errorf("entry %d: %w", index, errDamaged)
		}
		return false, nil
	}
	rest, sum := l.Extensions[:n:n], l.Extensions[n:]
	if sum[0] != checksumVersion || binary.BigEndian.Uint32(sum[1:]) != entryChecksum(l, rest) {
		return true, fmt.Errorf("entry %d: %w", index, errDamaged)
	}
	if l.Extensions = rest; n == 0 {
		l.Extensions = nil
	}
	return true, nil
}
