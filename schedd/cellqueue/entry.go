package cellqueue

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// The first byte of an entry of the replicated log says what it is.
const (
	entryFormat   = 1 // the number of a batch, as in encoding/binary, and its events as in the journal
	removalFormat = 2 // jobs that are removed from the history: their numbers as in encoding/binary
)

func appendEntry(b []byte, number uint64, batch []byte) []byte {
	return append(binary.AppendUvarint(append(b, entryFormat), number), batch...)
}

func parseEntry(entry []byte) (number uint64, batch []byte, err error) {
	if len(entry) == 0 || entry[0] != entryFormat {
		return 0, nil, fmt.Errorf("%w: an entry of the queue's log in a form that this release does not know; "+
			"install the release of the other central managers", roost.Invalid)
	}
	number, n := binary.Uvarint(entry[1:])
	if n <= 0 {
		return 0, nil, fmt.Errorf("%w: an entry of the queue's log without a number", roost.Invalid)
	}
	return number, entry[1+n:], nil
}

func appendRemoval(b []byte, seqs []uint64) []byte {
	b = append(b, removalFormat)
	for _, seq := range seqs {
		b = binary.AppendUvarint(b, seq)
	}
	return b
}

// parseRemoval returns the jobs that an entry removes from the history. Found is false if
// the entry is something else.
func parseRemoval(entry []byte) (seqs []uint64, found bool, err error) {
	if len(entry) == 0 || entry[0] != removalFormat {
		return nil, false, nil
	}
	for rest := entry[1:]; len(rest) > 0; {
		seq, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, true, fmt.Errorf("%w: an entry of the queue's log that removes from the history ends in the "+
				"middle of a number", roost.Invalid)
		}
		seqs, rest = append(seqs, seq), rest[n:]
	}
	return seqs, true, nil
}
