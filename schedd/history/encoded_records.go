package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// Encoded returns a job as it is stored, for the history of another host.
func (h *History) Encoded(seq uint64) (record []byte, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		v := tx.Bucket(bucketJobs).Get(bigEndian(seq))
		if v == nil {
			return fmt.Errorf("job %v: %w", roost.JobID{Seq: seq, Host: h.host}, roost.NotFound)
		}
		record = append(record, v...)
		return nil
	})
	return record, err
}

// AddEncoded adds jobs, by number, as Encoded has returned them on another host. A record
// that is invalid is an error, and none is added.
func (h *History) AddEncoded(encoded map[uint64][]byte) error {
	var records []JobRecord
	for seq, b := range encoded {
		r, err := decodeRecord(b)
		if err == nil {
			_, err = h.readRecord(r)
		}
		if err != nil {
			return fmt.Errorf("job %v: %w", roost.JobID{Seq: seq, Host: h.host}, err)
		}
		r.Seq = seq
		records = append(records, *r)
	}
	return h.Add(records)
}

// NewestEntry returns when the last job entered the history. It is zero if there is none.
func (h *History) NewestEntry() (at time.Time, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		if k, _ := tx.Bucket(bucketEnded).Cursor().Last(); len(k) >= 8 {
			at = time.Unix(0, int64(binary.BigEndian.Uint64(k)))
		}
		return nil
	})
	return at, err
}
