package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// encode encodes a record: its end time, then its key, snapshot and events, each with its
// length before it.
func (r *JobRecord) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Ended.UnixNano()))
	b = appendPiece(b, []byte(r.Key))
	b = appendPiece(b, r.Snapshot)
	for i := range r.Events {
		b = appendPiece(b, queue.AppendEvent(nil, &r.Events[i]))
	}
	return b
}

func appendPiece(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decodeRecord decodes what encode wrote. The result shares no memory with b.
func decodeRecord(b []byte) (*JobRecord, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("record of %d bytes: %w", len(b), roost.Invalid)
	}
	r := &JobRecord{Ended: time.Unix(0, int64(binary.BigEndian.Uint64(b)))}
	b = append([]byte(nil), b[8:]...)
	for i := 0; len(b) > 0; i++ {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return nil, fmt.Errorf("record that ends in the middle of a piece: %w", roost.Invalid)
		}
		text := b[used : used+int(n)]
		b = b[used+int(n):]
		switch i {
		case 0:
			r.Key = string(text)
		case 1:
			r.Snapshot = text
		default:
			e, err := queue.DecodeEvent(text)
			if err != nil {
				return nil, err
			}
			r.Events = append(r.Events, e)
		}
	}
	return r, nil
}
