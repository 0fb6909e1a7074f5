// Package journal stores a schedd's queue on disk: a log of batches of events, and a
// snapshot of each job. Append writes a batch to the log and syncs it, once. A checkpoint
// renews the snapshots of the jobs that have changed and removes the beginning of the
// log. It does not stop Append. Recovery loads the snapshots and then applies the batches
// that they do not include.
//
// The log is the directory queue.db.log, of package appendlog. The number of an entry is
// that of its batch, and its data are the events of the batch, each preceded by its
// length and its checksum.
//
// The snapshots are in queue.db, a bbolt file with these buckets:
//
//	jobs      job number   -> snapshot, as of the last checkpoint
//	events    job number, batch number, index -> event of a job in the queue, up to the
//	          last checkpoint
//	counters  name -> number: next-batch is the first batch that the snapshots do not
//	          include; log-id is the id of the log
//	log       batches of format 2, which had no log beside the file; empty since
//
// A crash between two steps of a checkpoint is harmless. Until the transaction with the
// snapshots is on disk, next-batch is the one before, and the log still has its batches.
// After it, the batches that the snapshots include are not applied again.
//
// queue.db of an earlier format is carried over when it is opened: carryOver. Its format
// is 3 since, so that an older program, which would miss the log, refuses it.
//
// [Open] refuses a damaged file: the error names the damaged jobs and entries, and
// [Repair] removes them.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/queue"
)

// FileName is the name of the file with the snapshots in the schedd's directory, and
// LogName that of the directory with the log.
const (
	FileName = "queue.db"
	LogName  = FileName + ".log"
)

// The names of the buckets and counters.
var (
	bucketLog      = []byte("log")
	bucketJobs     = []byte("jobs")
	bucketEvents   = []byte("events")
	bucketCounters = []byte("counters")

	keyLastSeq     = []byte("last-seq")
	keyNextBatch   = []byte("next-batch")
	keyIncarnation = []byte("incarnation")
	keyLogID       = []byte("log-id")
)

// Journal is an open journal. One goroutine owns it and calls Append, StartCheckpoint and
// Close. Any goroutine may call Events and Export. One at a time may call
// WriteCheckpoint. AddBatch is for the goroutine that applies a replicated log.
type Journal struct {
	db      *boltfile.DB
	log     *appendlog.Log
	path    string
	host    string
	size    atomic.Int64 // bytes of the batches since the last checkpoint was started
	batch   []byte
	event   []byte
	onPoint func(point string) // for tests: called at each failpoint

	observer Observer // nil: there is none

	replicate ReplicateFunc // nil: the journal is not replicated
	writing   sync.Mutex    // of a replicated journal: held for each change of the log
	ownNext   uint64        // of a replicated journal: the batch after the last one of Append
	exporting sync.RWMutex  // held for reading while the log must not lose its beginning
}

// Open opens the journal in dir, or creates it, and returns the queue as of the last
// Append.
func Open(dir, host string) (*Journal, *queue.Queue, error) { return openAt(dir, host, nil, nil) }

// OpenObserved is Open with an observer of the events.
func OpenObserved(dir, host string, o Observer) (*Journal, *queue.Queue, error) {
	return openAt(dir, host, o, nil)
}

func openAt(dir, host string, o Observer, onPoint func(string)) (*Journal, *queue.Queue, error) {
	j := &Journal{path: filepath.Join(dir, FileName), host: host, observer: o, onPoint: onPoint}
	q := queue.New(host)
	var err error
	j.db, err = boltfile.Open(j.path, fileKind(host), func(db *boltfile.DB) error {
		if db.Format() < logFormat {
			if err := j.carryOver(db); err != nil {
				return err
			}
		}
		return j.loadQueue(db, q)
	})
	if err != nil {
		return nil, nil, errors.Join(withLogDamages(err, dir, host), j.closeLog())
	}
	return j, q, nil
}

// initialMap is the number of bytes of the file that are mapped from the start. Most logs
// never exceed it, and extending the mapping blocks the readers.
const initialMap = 64 << 20

// loadQueue reads the snapshots and then the log.
func (j *Journal) loadQueue(db *boltfile.DB, q *queue.Queue) error {
	var id []byte
	var next uint64
	if err := db.View(func(tx *boltfile.Tx) error {
		counters := tx.Bucket(bucketCounters)
		id, next = cloneBytes(counters.Get(keyLogID)), readCounter(counters, keyNextBatch)
		q.RaiseLastSeq(readCounter(counters, keyLastSeq))
		return restoreJobs(tx, q)
	}); err != nil {
		return err
	}
	if len(id) != len(appendlog.ID{}) {
		return fmt.Errorf("it does not name its log")
	}
	if j.observer != nil {
		j.observer.OpenLog(appendlog.ID(id), next)
	}
	var err error
	j.log, err = appendlog.Open(logDir(j.path), appendlog.ID(id), next, func(number uint64, batch []byte) error {
		j.size.Add(int64(len(batch)))
		return j.replayBatch(q, number, cloneBytes(batch))
	})
	var damage *appendlog.DamageError
	if errors.As(err, &damage) {
		return &boltfile.DamageError{Path: damage.Dir, Kind: fileKind(j.host), Damages: logDamages(damage.Findings)}
	}
	return err
}

// logDir returns the directory of the log that belongs to the file at path.
func logDir(path string) string { return filepath.Join(filepath.Dir(path), LogName) }

// cloneBytes copies bytes that belong to a transaction.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

// Append writes a batch, which is on disk when it returns nil. Otherwise it can be called
// again with the same batch.
func (j *Journal) Append(events []queue.JobEvent) error {
	_, err := j.AppendPart(events, nil)
	return err
}

// AppendPart is Append for the first n of the events. Those are all but where a batch of
// a replicated journal would have more than MaxReplicatedBatch. It is cut before a
// submission or a change of a job, and where mayCut says so.
func (j *Journal) AppendPart(events []queue.JobEvent, mayCut func(i int) bool) (n int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	j.point(failpoint.ScheddBeforeAppend)
	n = j.encodeBatch(events, mayCut)
	if err := j.appendBatch(n); err != nil {
		return 0, err
	}
	return n, nil
}

// encodeBatch encodes as many events as a batch may have, and returns their number.
func (j *Journal) encodeBatch(events []queue.JobEvent, mayCut func(i int) bool) (n int) {
	j.batch = j.batch[:0]
	cut, size := 0, 0 // where the batch may end at the latest
	for i := range events {
		if j.replicate != nil && i > 0 && (beginsChange(&events[i]) || mayCut != nil && mayCut(i)) {
			cut, size = i, len(j.batch)
		}
		j.event = queue.AppendEvent(j.event[:0], &events[i])
		j.batch = appendEvent(j.batch, j.event)
		if len(j.batch) > MaxReplicatedBatch && cut > 0 {
			j.batch = j.batch[:size]
			return cut
		}
	}
	return len(events)
}

// beginsChange reports whether an event is the first of a submission, or of a change of a
// job. These have the texts of jobs, which may be large. The jobs of a submission are in
// one batch: its key stands for all of them.
func beginsChange(e *queue.JobEvent) bool {
	switch e.Type {
	case queue.Submitted:
		return e.Submission.PartIndex == 0
	case queue.Altered, queue.Revised, queue.Returned:
		return true
	}
	return false
}

// appendBatch writes the encoded batch, which has so many events.
func (j *Journal) appendBatch(events int) error {
	size := len(j.batch)
	if j.replicate != nil {
		return j.appendReplicated(events)
	}
	err := j.log.Write(j.batch)
	j.batch, j.event = limitBuffer(j.batch), limitBuffer(j.event)
	if err != nil {
		return err
	}
	j.point(failpoint.ScheddAfterAppend)
	number, err := j.log.Sync()
	if err != nil {
		return err
	}
	j.point(failpoint.ScheddAfterFsync)
	if j.size.Add(int64(size)); j.observer != nil {
		j.observer.NoteAppended(events, number)
	}
	return nil
}

// limitBuffer returns a buffer for the next use, unless it is large.
func limitBuffer(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b[:0]
}

// point marks an instant at which a crash is interesting.
func (j *Journal) point(name string) {
	failpoint.Point(name)
	if j.onPoint != nil {
		j.onPoint(name)
	}
}

// Size returns how many bytes the log has grown since the last checkpoint was started.
func (j *Journal) Size() int { return int(j.size.Load()) }

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

// Close closes the files.
func (j *Journal) Close() error { return errors.Join(j.closeLog(), j.db.Close()) }

func (j *Journal) closeLog() error {
	if j.log == nil {
		return nil
	}
	return j.log.Close()
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func readCounter(b *boltfile.Bucket, key []byte) uint64 {
	if v := b.Get(key); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
