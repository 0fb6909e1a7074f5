package feed

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// recordFormat is the version of a record's form.
const recordFormat = 1

// maxRecordEntries bounds the entries of a record.
const maxRecordEntries = 4096

// record is what the log of the feed has in one of its own entries.
type record struct {
	through uint64 // all that follows from batches of the journal before this one is in the log
	first   uint64 // number of its first entry, or of the gap
	gap     bool   // entries are missing before this number; it has none of its own
	at      time.Time
	entries [][]byte // in the form of package codec
}

// next returns the number after the record.
func (r *record) next() uint64 {
	if r.gap {
		return r.first + 1
	}
	return r.first + uint64(len(r.entries))
}

// append adds the record's form on disk to b. These are format, whether it is a gap, and
// as varints batch, first number, time in milliseconds and number of entries; then the
// entries, each with its length before it.
func (r *record) append(b []byte) []byte {
	kind := byte(0)
	if r.gap {
		kind = 1
	}
	b = append(b, recordFormat, kind)
	b = binary.AppendUvarint(binary.AppendUvarint(b, r.through), r.first)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.at.UnixMilli())), uint64(len(r.entries)))
	for _, e := range r.entries {
		b = append(binary.AppendUvarint(b, uint64(len(e))), e...)
	}
	return b
}

// decodeRecord reads what append wrote. The entries share memory with b.
func decodeRecord(b []byte) (r record, err error) {
	if len(b) < 2 || b[0] != recordFormat {
		return r, fmt.Errorf("record of a feed: %w: its format is unknown", roost.BadConfig)
	}
	r.gap = b[1] == 1
	b = b[2:]
	var at, count uint64
	for _, to := range []*uint64{&r.through, &r.first, &at, &count} {
		n, used := binary.Uvarint(b)
		if used <= 0 {
			return r, fmt.Errorf("record of a feed: %w: it ends in its header", roost.Invalid)
		}
		*to, b = n, b[used:]
	}
	r.at = time.UnixMilli(int64(at))
	if count > maxRecordEntries {
		return r, fmt.Errorf("record of a feed: %w: it has %d entries", roost.Invalid, count)
	}
	for range count {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return r, fmt.Errorf("record of a feed: %w: it ends in an entry", roost.Invalid)
		}
		r.entries = append(r.entries, b[used:used+int(n):used+int(n)])
		b = b[used+int(n):]
	}
	return r, nil
}
