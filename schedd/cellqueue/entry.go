package cellqueue

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// entryFormat is the first byte of an entry of the replicated log. The number of the
// batch follows, as in encoding/binary, and the events as in the journal.
const entryFormat = 1

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
