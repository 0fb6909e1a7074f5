package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/queue"
)

// QueueCheckpoint contains snapshots of what has changed since the last checkpoint. They
// include all batches before StartCheckpoint, and none after it.
type QueueCheckpoint struct {
	Jobs    map[uint64][]byte // snapshots by job number; nil: the job has left the queue
	LastSeq uint64

	next uint64 // first batch that the snapshots do not include
}

// StartCheckpoint lets the next batch begin a new segment of the log. WriteCheckpoint
// then writes the checkpoint, while Append continues. If it fails it can be called again.
func (j *Journal) StartCheckpoint(c *QueueCheckpoint) error {
	if err := j.log.BeginSegment(); err != nil {
		return err
	}
	c.next = j.log.Next()
	j.size = 0
	j.point(failpoint.ScheddAfterNewSegment)
	return nil
}

// WriteCheckpoint writes the snapshots. It moves the events that they include from the
// log to their jobs, and removes those batches from the log. If it fails it can be called
// again.
func (j *Journal) WriteCheckpoint(c *QueueCheckpoint) error {
	err := j.db.Update(func(tx *boltfile.Tx) error {
		if err := j.moveEvents(tx, c.next); err != nil {
			return err
		}
		if err := writeSnapshots(tx, c); err != nil {
			return err
		}
		j.point(failpoint.ScheddInCheckpoint)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	j.point(failpoint.ScheddAfterCheckpoint)
	if err := j.log.DropBefore(c.next); err != nil {
		return err
	}
	j.point(failpoint.ScheddAfterTruncate)
	return nil
}

// moveEvents copies the events of the batches before next to the bucket of events by job.
func (j *Journal) moveEvents(tx *boltfile.Tx, next uint64) error {
	from := readCounter(tx.Bucket(bucketCounters), keyNextBatch)
	return j.eachBatch(from, next, func(batch uint64, events []byte) error { return putEvents(tx, batch, events) })
}

// eachBatch calls f with each batch from number from to before to.
func (j *Journal) eachBatch(from, to uint64, f func(batch uint64, events []byte) error) error {
	return boltfile.CatchFaults(func() error { return j.log.EachEntry(from, to, f) })
}

// putEvents puts the events of a batch into the bucket of events by job.
func putEvents(tx *boltfile.Tx, batch uint64, events []byte) error {
	place := uint32(0)
	return eachPiece(events, eventSumSize, func(_, raw []byte) error {
		e, err := queue.DecodeEvent(raw)
		if err != nil {
			return err
		}
		if e.Submission != nil { // it is in the snapshot
			e.Submission = nil
			raw = queue.AppendEvent(nil, &e)
		}
		place++
		return tx.Bucket(bucketEvents).Put(eventKey(e.Job, batch, place), raw)
	})
}

// eventKey returns the key of an event in the bucket of events by job. The places in a
// batch begin at 1.
func eventKey(job, batch uint64, place uint32) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 20), job)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(key, batch), place)
}

// writeSnapshots writes the snapshots and the counters of a checkpoint.
func writeSnapshots(tx *boltfile.Tx, c *QueueCheckpoint) error {
	jobs := tx.Bucket(bucketJobs)
	for seq, snapshot := range c.Jobs {
		if snapshot != nil {
			if err := jobs.Put(bigEndian(seq), snapshot); err != nil {
				return err
			}
			continue
		}
		if err := jobs.Delete(bigEndian(seq)); err != nil {
			return err
		}
		if err := dropEvents(tx, seq); err != nil {
			return err
		}
	}
	counters := tx.Bucket(bucketCounters)
	if err := counters.Put(keyNextBatch, bigEndian(c.next)); err != nil {
		return err
	}
	return counters.Put(keyLastSeq, bigEndian(c.LastSeq))
}

func dropEvents(tx *boltfile.Tx, seq uint64) error {
	c := tx.Bucket(bucketEvents).Cursor()
	for k, _ := c.Seek(bigEndian(seq)); k != nil && binary.BigEndian.Uint64(k) == seq; k, _ = c.Seek(bigEndian(seq)) {
		if err := c.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
