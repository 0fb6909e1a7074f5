package journal

import (
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// Bounds of the snapshots that are decoded and not yet in the queue.
const (
	decodedBatch   = 128 // jobs
	decodedBatches = 4
)

// restoreJobs puts the jobs of the snapshots into a queue. To read and decode a job takes
// as long as to put it in, so another goroutine decodes the next jobs meanwhile.
func restoreJobs(tx *boltfile.Tx, q *queue.Queue) (err error) {
	batches, decoded := make(chan []*queue.JobSnapshot, decodedBatches), make(chan error, 1)
	go func() {
		defer close(batches)
		decoded <- boltfile.CatchFaults(func() error { return decodeJobs(tx, batches) })
	}()
	for batch := range batches { // to the end, also after an error: the other goroutine uses tx
		for _, s := range batch {
			if err == nil {
				err = q.RestoreJob(s)
			}
		}
	}
	if failed := <-decoded; err == nil {
		err = failed
	}
	return err
}

// decodeJobs decodes the snapshots in the order of the jobs.
func decodeJobs(tx *boltfile.Tx, to chan<- []*queue.JobSnapshot) error {
	var batch []*queue.JobSnapshot
	err := tx.Bucket(bucketJobs).ForEach(func(_, v []byte) error {
		s, err := queue.DecodeSnapshot(v)
		if err != nil {
			return err
		}
		if batch = append(batch, s); len(batch) == decodedBatch {
			to <- batch
			batch = make([]*queue.JobSnapshot, 0, decodedBatch)
		}
		return nil
	})
	to <- batch
	return err
}
