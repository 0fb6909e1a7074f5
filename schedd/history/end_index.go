package history

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/table"
)

// The history has an index of end times, because each call of Torque's qstat lists the
// jobs that have just ended. A scan of all jobs of a pool for those of the last five
// minutes would take seconds. Jobs from before the index existed are not in it, and are
// too old for such queries.

// endKey returns the key of a job in the index of end times.
func endKey(ended, seq []byte) []byte { return append(slices.Clone(ended), seq...) }

// addEnd adds a job to the index of end times. It must run before bucketJobs gets the job
// with this time, so that a job that is added twice has one entry.
func addEnd(tx *boltfile.Tx, seq uint64, ended time.Time) error {
	if err := removeEnd(tx, seq); err != nil {
		return err
	}
	return tx.Bucket(bucketEnded).Put(endKey(bigEndian(uint64(ended.UnixNano())), bigEndian(seq)), nil)
}

// removeEnd removes from the index a job that is in bucketJobs.
func removeEnd(tx *boltfile.Tx, seq uint64) error {
	record := tx.Bucket(bucketJobs).Get(bigEndian(seq))
	if len(record) < 8 {
		return nil
	}
	return tx.Bucket(bucketEnded).Delete(endKey(record[:8], bigEndian(seq)))
}

// Recent lists the numbers of the jobs that entered the history since then.
func (h *History) Recent(since time.Time) (seqs []uint64, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketEnded).Cursor()
		for k, _ := c.Seek(bigEndian(uint64(since.UnixNano()))); k != nil; k, _ = c.Next() {
			seqs = append(seqs, binary.BigEndian.Uint64(k[8:]))
		}
		return nil
	})
	slices.Sort(seqs)
	return seqs, err
}

// RowsOf returns the rows of the given jobs. It skips jobs that are not in the history.
func (h *History) RowsOf(seqs []uint64, w RowFilter) (rows []*table.JobRow, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		jobs := tx.Bucket(bucketJobs)
		for _, seq := range seqs {
			record := jobs.Get(bigEndian(seq))
			if record == nil {
				continue
			}
			row, err := h.row(tx, seq, record, w)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}
