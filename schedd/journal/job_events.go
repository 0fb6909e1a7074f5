package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// Events lists the events of jobs in the queue, oldest first, without their submissions.
// A job that is not in the log has none. One call reads the log once for any number of
// jobs, so ask about many at once.
func (j *Journal) Events(seqs ...uint64) (map[uint64][]queue.JobEvent, error) {
	for range eventAttempts {
		events, err := j.readEvents(seqs)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return events, err
		}
		// a checkpoint has moved them from the log to the file meanwhile
	}
	return nil, fmt.Errorf("%s: %w: the log of the newest events is gone", j.path, fs.ErrNotExist)
}

// eventAttempts bounds how often Events begins again because of a checkpoint.
const eventAttempts = 10

func (j *Journal) readEvents(seqs []uint64) (map[uint64][]queue.JobEvent, error) {
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
	var next uint64
	err := j.db.View(func(tx *boltfile.Tx) error {
		next = readCounter(tx.Bucket(bucketCounters), keyNextBatch)
		c := tx.Bucket(bucketEvents).Cursor()
		for _, seq := range seqs {
			for k, v := c.Seek(bigEndian(seq)); k != nil && binary.BigEndian.Uint64(k) == seq; k, v = c.Next() {
				if err := retain(v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = j.eachBatch(next, j.log.Next(), func(_ uint64, batch []byte) error {
			return eachPiece(batch, eventSumSize, func(_, raw []byte) error { return retain(raw) })
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.path, err)
	}
	return events, nil
}
