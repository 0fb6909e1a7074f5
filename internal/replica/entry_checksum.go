package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Each entry has a checksum of Roost's own, over all that it says and its index: an entry
// that is another's, or an old one, is noticed as one with a flipped bit is. It is a
// CRC-32C, which finds every error of up to three bits in an entry; it travels in what
// raft keeps for whoever wraps a log.

const (
	checksumVersion = 1
	checksumSize    = 1 + 4
)

// errDamaged is that what is on disk is not what was written.
var errDamaged = errors.New("its checksum is wrong")

// entryChecksum is the checksum of an entry whose extensions end before it.
func entryChecksum(l *raft.Log, extensions []byte) uint32 {
	b := binary.BigEndian.AppendUint64(nil, l.Index)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	b = append(b, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, uint64(l.AppendedAt.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(len(l.Data)))
	return checksumOf(b, l.Data, extensions)
}

// withChecksum is an entry as it is on disk.
func withChecksum(l *raft.Log) *raft.Log {
	on := *l
	on.Extensions = append(append(make([]byte, 0, len(l.Extensions)+checksumSize), l.Extensions...), checksumVersion)
	on.Extensions = binary.BigEndian.AppendUint32(on.Extensions, entryChecksum(l, l.Extensions))
	return &on
}

// checkEntry takes the checksum off an entry that was read from disk. One without belongs
// to an older release; summed says whether it has one.
func checkEntry(index uint64, l *raft.Log) (summed bool, err error) {
	if l.Index != index {
		return false, fmt.Errorf("entry %d: %w: entry %d stands there", index, errDamaged, l.Index)
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
