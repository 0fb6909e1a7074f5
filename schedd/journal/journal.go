// Package journal stores a schedd's queue on disk. The file contains a log of batches of
// events and a snapshot of each job. Append syncs each batch to disk as one transaction,
// and a checkpoint renews the snapshots of the jobs that have changed. Recovery loads the
// snapshots and then applies the log.
//
// The file is a bbolt file with these buckets:
//
//	log       batch number -> events, each preceded by its length and its checksum
//	jobs      job number   -> snapshot, as of the last checkpoint
//	events    job number, batch number, index -> event of a job in the queue, up to the
//	          last checkpoint
//	counters  name -> number
//
// [Open] refuses a damaged file: the error names the damaged jobs and entries, and
// [Repair] removes them.
package journal

import (
	"encoding/binary"
	"fmt"
	"path/filepath"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/queue"
)

// FileName is the name of the file in the schedd's directory.
const FileName = "queue.db"

// The names of the buckets and counters.
var (
	bucketLog      = []byte("log")
	bucketJobs     = []byte("jobs")
	bucketEvents   = []byte("events")
	bucketCounters = []byte("counters")

	keyLastSeq     = []byte("last-seq")
	keyNextBatch   = []byte("next-batch")
	keyIncarnation = []byte("incarnation")
)

// Journal is an open log. One goroutine owns it and calls Append and Close; any goroutine
// may call Events.
type Journal struct {
	db   *boltfile.DB
	path string
	next uint64 // number of the next batch
	size int    // bytes in the log since the last checkpoint
}

// Open opens the log in dir, or creates it, and returns the queue as of the last Append.
func Open(dir, host string) (*Journal, *queue.Queue, error) {
	j := &Journal{path: filepath.Join(dir, FileName)}
	q := queue.New(host)
	var err error
	j.db, err = boltfile.Open(j.path, fileKind(host), func(db *boltfile.DB) error {
		return db.View(func(tx *boltfile.Tx) error { return j.loadQueue(tx, q) })
	})
	if err != nil {
		return nil, nil, err
	}
	return j, q, nil
}

// initialMap is the number of bytes of the file that are mapped from the start. Most logs
// never exceed it, and extending the mapping blocks the readers.
const initialMap = 64 << 20

// loadQueue reads the snapshots and then the log.
func (j *Journal) loadQueue(tx *boltfile.Tx, q *queue.Queue) error {
	if err := restoreJobs(tx, q); err != nil {
		return err
	}
	q.RaiseLastSeq(readCounter(tx.Bucket(bucketCounters), keyLastSeq))
	j.next = readCounter(tx.Bucket(bucketCounters), keyNextBatch)
	return tx.Bucket(bucketLog).ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("a batch has a number of %d bytes", len(k))
		}
		j.next = binary.BigEndian.Uint64(k) + 1
		j.size += len(v)
		return eachEvent(cloneBytes(v), func(raw []byte) error {
			e, err := queue.DecodeEvent(raw)
			if err == nil {
				q.Apply(e)
			}
			return err
		})
	})
}

// cloneBytes copies bytes that belong to a transaction.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

// QueueCheckpoint contains snapshots of what has changed since the last checkpoint. They
// include the events of the batch with which it is appended.
type QueueCheckpoint struct {
	Jobs    map[uint64][]byte // snapshots by job number; nil: the job has left the queue
	LastSeq uint64
}

// Append writes a batch and, if given, a checkpoint. Both are on disk when it returns
// nil.
func (j *Journal) Append(events []queue.JobEvent, checkpoint *QueueCheckpoint) error {
	failpoint.Point(failpoint.ScheddBeforeAppend)
	var batch []byte
	for i := range events {
		batch = appendEvent(batch, queue.AppendEvent(nil, &events[i]))
	}
	size := j.size + len(batch)
	err := j.db.Update(func(tx *boltfile.Tx) error {
		log := tx.Bucket(bucketLog)
		log.FillEnd() // batches are only ever added at the end
		if len(batch) > 0 {
			if err := log.Put(bigEndian(j.next), batch); err != nil {
				return err
			}
		}
		if checkpoint != nil {
			size = 0
			if err := j.writeCheckpoint(tx, checkpoint); err != nil {
				return err
			}
		}
		failpoint.Point(failpoint.ScheddAfterAppend)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	failpoint.Point(failpoint.ScheddAfterFsync)
	j.next++
	j.size = size
	return nil
}

// writeCheckpoint writes snapshots, moves the log's events to their jobs, and empties the
// log.
func (j *Journal) writeCheckpoint(tx *boltfile.Tx, c *QueueCheckpoint) error {
	if err := moveEventsToJobs(tx); err != nil {
		return err
	}
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
	meta := tx.Bucket(bucketCounters)
	// the log is empty now, and the batch numbers must not restart at 0: they are part of
	// the keys of events
	if err := meta.Put(keyNextBatch, bigEndian(j.next+1)); err != nil {
		return err
	}
	return meta.Put(keyLastSeq, bigEndian(c.LastSeq))
}

// moveEventsToJobs moves the events of the log to the bucket of events by job.
func moveEventsToJobs(tx *boltfile.Tx) error {
	events := tx.Bucket(bucketEvents)
	err := tx.Bucket(bucketLog).ForEach(func(k, v []byte) error {
		place := uint32(0)
		return eachEvent(v, func(raw []byte) error {
			e, err := queue.DecodeEvent(raw)
			if err != nil {
				return err
			}
			if e.Submission != nil { // it is in the snapshot
				e.Submission = nil
				raw = queue.AppendEvent(nil, &e)
			}
			place++
			return events.Put(append(append(bigEndian(e.Job), k...), binary.BigEndian.AppendUint32(nil, place)...), raw)
		})
	})
	if err != nil {
		return err
	}
	return tx.EmptyBucket(bucketLog)
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

// Size returns how many bytes the log has grown since the last checkpoint.
func (j *Journal) Size() int { return j.size }

// NextIncarnation increments the number of starts of the schedd on disk and returns it.
func (j *Journal) NextIncarnation() (n uint64, err error) {
	err = j.db.Update(func(tx *boltfile.Tx) error {
		meta := tx.Bucket(bucketCounters)
		n = readCounter(meta, keyIncarnation) + 1
		return meta.Put(keyIncarnation, bigEndian(n))
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", j.path, err)
	}
	return n, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.db.Close() }

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func readCounter(b *boltfile.Bucket, key []byte) uint64 {
	if v := b.Get(key); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
