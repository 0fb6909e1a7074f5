package history

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/table"
)

// The row of a job in lists is stored beside its record. Building it from the record
// takes much longer, and clients ask for ended jobs again and again. Old records have no
// row, and for them it is built on demand.

// RowFilter selects rows.
type RowFilter struct {
	Owners  []string // only the jobs of these owners; empty: all jobs
	Ads     bool
	MakeRow func(past *queue.Queue, seq uint64) *table.JobRow // builds the row of a record that has none
}

// Row returns the row of one job, or of that whose task has the number.
func (h *History) Row(seq uint64, w RowFilter) (row *table.JobRow, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		seq, record := h.find(tx, seq)
		if record == nil {
			return fmt.Errorf("job %v: %w", roost.JobID{Seq: seq, Host: h.host}, roost.NotFound)
		}
		row, err = h.row(tx, seq, record, w)
		return err
	})
	return row, err
}

// Rows returns up to most rows of the jobs from a number on, in the order of their
// numbers.
func (h *History) Rows(from uint64, most int, w RowFilter) (rows []*table.JobRow, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		jobs := tx.Bucket(bucketJobs)
		for _, seq := range jobNumbers(tx, from, most, w.Owners) {
			row, err := h.row(tx, seq, jobs.Get(bigEndian(seq)), w)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}

// RowsBefore returns the rows of the jobs with numbers below one, the highest first.
func (h *History) RowsBefore(before uint64, most int, w RowFilter) (rows []*table.JobRow, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		jobs := tx.Bucket(bucketJobs)
		for _, seq := range jobNumbersBefore(tx, before, most, w.Owners) {
			row, err := h.row(tx, seq, jobs.Get(bigEndian(seq)), w)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}

// jobNumbersBefore is jobNumbers in the other direction.
func jobNumbersBefore(tx *boltfile.Tx, before uint64, most int, owners []string) (seqs []uint64) {
	last := func(c *boltfile.Cursor, at []byte) []byte { // the key before at
		k, _ := c.Seek(at)
		if k == nil {
			k, _ = c.Last()
			return k
		}
		k, _ = c.Prev()
		return k
	}
	if len(owners) == 0 {
		c := tx.Bucket(bucketJobs).Cursor()
		for k := last(c, bigEndian(before)); k != nil && len(seqs) < most; k, _ = c.Prev() {
			seqs = append(seqs, binary.BigEndian.Uint64(k))
		}
		return seqs
	}
	for _, owner := range slices.Compact(slices.Sorted(slices.Values(owners))) {
		c, prefix := tx.Bucket(bucketOwners).Cursor(), len(owner)+1
		k := last(c, submitKeyPrefix(owner, before))
		for n := 0; n < most && len(k) == prefix+8 && string(k[:len(owner)]) == owner && k[len(owner)] == 0; n++ {
			seqs = append(seqs, binary.BigEndian.Uint64(k[prefix:]))
			k, _ = c.Prev()
		}
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	return seqs[:min(most, len(seqs))]
}

// jobNumbers lists jobs, of some owners or of all.
func jobNumbers(tx *boltfile.Tx, from uint64, most int, owners []string) (seqs []uint64) {
	if len(owners) == 0 {
		c := tx.Bucket(bucketJobs).Cursor()
		for k, _ := c.Seek(bigEndian(from)); k != nil && len(seqs) < most; k, _ = c.Next() {
			seqs = append(seqs, binary.BigEndian.Uint64(k))
		}
		return seqs
	}
	for _, owner := range slices.Compact(slices.Sorted(slices.Values(owners))) {
		c, prefix := tx.Bucket(bucketOwners).Cursor(), len(owner)+1
		k, _ := c.Seek(submitKeyPrefix(owner, from))
		for n := 0; n < most && len(k) == prefix+8 && string(k[:len(owner)]) == owner && k[len(owner)] == 0; n++ {
			seqs = append(seqs, binary.BigEndian.Uint64(k[prefix:]))
			k, _ = c.Next()
		}
	}
	slices.Sort(seqs)
	return seqs[:min(most, len(seqs))]
}

// row returns the row of the job with that record.
func (h *History) row(tx *boltfile.Tx, seq uint64, record []byte, w RowFilter) (*table.JobRow, error) {
	row, ok := decodeRow(tx.Bucket(bucketRows).Get(bigEndian(seq)))
	if ok && !w.Ads {
		row.Seq = seq
		return row, nil
	}
	r, err := decodeRecord(record)
	if err != nil {
		return nil, fmt.Errorf("%s: job %d: %w", h.path, seq, err)
	}
	if !ok {
		past, err := h.readRecord(r)
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", seq, err)
		}
		row = w.MakeRow(past, seq)
	}
	if row.Seq = seq; w.Ads {
		if admitted, err := queue.DecodeSubmission(r.Snapshot); err == nil && admitted.Submission != nil {
			row.Ad = adtext.Plain(admitted.Submission.Ad)
		}
	}
	return row, nil
}

// encodeRow encodes a row. It contains the submit time, the owner's uid, whether the job
// is an array, the owner with its length before it, and the text.
func encodeRow(r *table.JobRow) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Submitted))
	b = binary.BigEndian.AppendUint32(b, r.UID)
	b = append(b, map[bool]byte{true: 1}[r.IsArray])
	return append(appendPiece(b, []byte(r.Owner)), r.Text.String()...)
}

// decodeRow decodes what encodeRow wrote. The result shares no memory with b.
func decodeRow(b []byte) (*table.JobRow, bool) {
	if len(b) < 14 {
		return nil, false
	}
	n, used := binary.Uvarint(b[13:])
	if used <= 0 || n > uint64(len(b)-13-used) {
		return nil, false
	}
	owner := 13 + used
	return &table.JobRow{
		Submitted: int64(binary.BigEndian.Uint64(b)), UID: binary.BigEndian.Uint32(b[8:]), IsArray: b[12] == 1,
		Owner: string(b[owner : owner+int(n)]),
		Text:  adtext.Plain(string(b[owner+int(n):])), IsFinal: true,
	}, true
}
