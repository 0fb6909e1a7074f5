package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// Events lists the events of jobs in the queue, oldest first, without their submissions.
// A job that is not in the log has none. One call reads the log once for any number of
// jobs, so ask about many at once.
func (j *Journal) Events(seqs ...uint64) (map[uint64][]queue.JobEvent, error) {
	events := make(map[uint64][]queue.JobEvent, len(seqs))
	for _, seq := range seqs {
		events[seq] = nil
	}
	retain := func(raw []byte) error {
		if _, wanted := events[queue.EncodedJob(raw)]; !wanted {
			return nil
		}
		e, err := queue.DecodeEvent(raw)
		if err != nil {
			return err
		}
		e.Submission = nil
		events[e.Job] = append(events[e.Job], e)
		return nil
	}
	err := j.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketEvents).Cursor()
		for _, seq := range seqs {
			for k, v := c.Seek(bigEndian(seq)); k != nil && binary.BigEndian.Uint64(k) == seq; k, v = c.Next() {
				if err := retain(v); err != nil {
					return err
				}
			}
		}
		return tx.Bucket(bucketLog).ForEach(func(_, v []byte) error { return eachEvent(v, retain) })
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.path, err)
	}
	return events, nil
}
