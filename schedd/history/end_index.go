package history

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/table"
)

// When jobs ended is indexed, because Torque's qstat lists those that have just ended
// each time it is called: to look at all that a pool has ever run for those of the last
// five minutes would take seconds. Jobs from before there was an index are in none, and
// older than anybody asks for.

// endKey is the key of a job in the index.
func endKey(ended, seq []byte) []byte { return append(slices.Clone(ended), seq...) }

// addEnd puts a job into the index. It must not be in jobs with this time yet: one that
// goes in twice has one entry.
func addEnd(tx *boltfile.Tx, seq uint64, ended time.Time) error {
	if err := removeEnd(tx, seq); err != nil {
		return err
	}
	return tx.Bucket(bucketEnded).Put(endKey(bigEndian(uint64(ended.UnixNano())), bigEndian(seq)), nil)
}

// removeEnd takes a job that is in jobs out of the index.
func removeEnd(tx *boltfile.Tx, seq uint64) error {
	record := tx.Bucket(bucketJobs).Get(bigEndian(seq))
	if len(record) < 8 {
		return nil
	}
	return tx.Bucket(bucketEnded).Delete(endKey(record[:8], bigEndian(seq)))
}

// Recent lists the jobs that came into the history since then, by their numbers.
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

// RowsOf returns what lists tell of some jobs, but for those that are not there.
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
