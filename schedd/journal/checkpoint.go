package journal

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/failpoint"
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
	if j.replicate != nil {
		j.writing.Lock()
		defer j.writing.Unlock()
		if next := j.log.Next(); next != j.ownNext {
			return j.staleError(j.ownNext, next) // the snapshots lack what others have added
		}
	}
	if err := j.log.BeginSegment(); err != nil {
		return err
	}
	c.next = j.log.Next()
	j.size.Store(0)
	if j.observer != nil {
		j.observer.NoteCheckpoint()
	}
	j.point(failpoint.ScheddAfterNewSegment)
	return nil
}

// WriteCheckpoint writes the snapshots. It moves the events that they include from the
// log to their jobs, and removes those batches from the log. If it fails it can be called
// again.
func (j *Journal) WriteCheckpoint(c *QueueCheckpoint) error {
	if j.observer != nil {
		j.observer.SyncThrough(c.next)
	}
	err := j.db.Update(func(tx *boltfile.Tx) error {
		if err := writeRecords(tx, c, func(add batchFunc) error {
			from := readCounter(tx.Bucket(bucketCounters), keyNextBatch)
			return j.eachBatch(from, c.next, add)
		}); err != nil {
			return err
		}
		j.point(failpoint.ScheddInCheckpoint)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	j.point(failpoint.ScheddAfterCheckpoint)
	j.exporting.Lock()
	defer j.exporting.Unlock()
	if err := j.log.DropBefore(c.next); err != nil {
		return err
	}
	j.point(failpoint.ScheddAfterTruncate)
	return nil
}

// batchFunc is called with the number of a batch and its events.
type batchFunc = func(batch uint64, events []byte) error

// eachBatch calls f with each batch from number from to before to.
func (j *Journal) eachBatch(from, to uint64, f batchFunc) error {
	return boltfile.CatchFaults(func() error { return j.log.EachEntry(from, to, f) })
}

// writeRecords writes a checkpoint in a transaction. It moves the events of the batches
// for which eachBatch calls its argument. It removes old events first: afterwards bbolt
// has large pages, as eventMover explains, and removing one record moves all later ones.
func writeRecords(tx *boltfile.Tx, c *QueueCheckpoint, eachBatch func(batchFunc) error) error {
	if err := removeJobs(tx, c.Jobs); err != nil {
		return err
	}
	m := &eventMover{bucket: tx.Bucket(bucketEvents), snapshots: c.Jobs}
	if err := eachBatch(m.addBatch); err != nil {
		return err
	}
	if err := m.putEvents(); err != nil {
		return err
	}
	return writeSnapshots(tx, c)
}

// removeJobs removes the snapshots and the events of the jobs that have left the queue.
func removeJobs(tx *boltfile.Tx, snapshots map[uint64][]byte) error {
	jobs := tx.Bucket(bucketJobs)
	for seq, snapshot := range snapshots {
		if snapshot != nil {
			continue
		}
		if err := jobs.Delete(bigEndian(seq)); err != nil {
			return err
		}
		if err := dropEvents(tx, seq); err != nil {
			return err
		}
	}
	return nil
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

// writeSnapshots writes the snapshots and the counters of a checkpoint. bbolt splits
// pages only at the end of a transaction, so keys in no order would each be put into the
// middle of one long list.
func writeSnapshots(tx *boltfile.Tx, c *QueueCheckpoint) error {
	jobs := tx.Bucket(bucketJobs)
	for _, seq := range slices.Sorted(maps.Keys(c.Jobs)) {
		snapshot := c.Jobs[seq]
		if snapshot == nil {
			continue
		}
		if err := jobs.Put(bigEndian(seq), snapshot); err != nil {
			return err
		}
	}
	counters := tx.Bucket(bucketCounters)
	if err := counters.Put(keyNextBatch, bigEndian(c.next)); err != nil {
		return err
	}
	return counters.Put(keyLastSeq, bigEndian(c.LastSeq))
}
