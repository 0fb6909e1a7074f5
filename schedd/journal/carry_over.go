package journal

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/queue"
)

// logFormat is the format of a queue.db with a log beside it. In format 2 the batches
// since the last checkpoint are in a bucket of the file.
const logFormat = 3

// carryOver creates the log for a file of format 2, and makes a checkpoint of the batches
// in it. A new file is an empty one of format 2. It changes the file in one transaction,
// after an empty log is on disk; so after a crash in between it begins again.
func (j *Journal) carryOver(db *boltfile.DB) error {
	dir := logDir(j.path)
	if empty, err := appendlog.IsEmpty(dir); err != nil || !empty {
		if err != nil {
			return err
		}
		return &boltfile.DamageError{Path: j.path, Kind: fileKind(j.host), Damages: foreignLog()}
	}
	q := queue.New(j.host)
	var next uint64
	if err := db.View(func(tx *boltfile.Tx) (err error) {
		next, err = loadBatches(tx, q)
		return err
	}); err != nil {
		return err
	}
	c := &QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: q.LastSeq(), next: next}
	for _, seq := range q.TakeUnsaved() {
		c.Jobs[seq], _ = q.Snapshot(seq)
	}
	var id appendlog.ID
	rand.Read(id[:])
	j.point(failpoint.ScheddBeforeCarryOver)
	if err := appendlog.Prepare(dir, id, next); err != nil {
		return fmt.Errorf("create its log: %w", err)
	}
	j.point(failpoint.ScheddInCarryOver)
	err := db.Update(func(tx *boltfile.Tx) error {
		if err := moveBatches(tx, c); err != nil {
			return err
		}
		tx.SetFormat(logFormat)
		return tx.Bucket(bucketCounters).Put(keyLogID, id[:])
	})
	if err != nil {
		return fmt.Errorf("carry it over to format %d: %w", logFormat, err)
	}
	j.point(failpoint.ScheddAfterCarryOver)
	return nil
}

// foreignLog is the damage of a file without the name of a log, beside a log with
// entries.
func foreignLog() []boltfile.DamageFinding {
	return []boltfile.DamageFinding{{Reason: "it is not the file to which the newest events in " + LogName + " belong"}}
}

// loadBatches reads a file of format 2: its snapshots and then its batches.
func loadBatches(tx *boltfile.Tx, q *queue.Queue) (next uint64, err error) {
	if err := tx.Bucket(bucketJobs).ForEach(func(_, v []byte) error {
		return q.RestoreSnapshot(cloneBytes(v))
	}); err != nil {
		return 0, err
	}
	q.RaiseLastSeq(readCounter(tx.Bucket(bucketCounters), keyLastSeq))
	next = readCounter(tx.Bucket(bucketCounters), keyNextBatch)
	err = tx.Bucket(bucketLog).ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("a batch has a number of %d bytes", len(k))
		}
		next = binary.BigEndian.Uint64(k) + 1
		return eachEvent(cloneBytes(v), func(raw []byte) error {
			e, err := queue.DecodeEvent(raw)
			if err == nil {
				q.Apply(e)
			}
			return err
		})
	})
	return next, err
}

// moveBatches writes a checkpoint of all batches of a file of format 2, and removes the
// batches.
func moveBatches(tx *boltfile.Tx, c *QueueCheckpoint) error {
	if err := writeRecords(tx, c, func(add batchFunc) error {
		return tx.Bucket(bucketLog).ForEach(func(k, v []byte) error { return add(binary.BigEndian.Uint64(k), v) })
	}); err != nil {
		return err
	}
	return tx.EmptyBucket(bucketLog)
}
