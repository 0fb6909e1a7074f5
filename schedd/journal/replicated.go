package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// A journal can be replicated: the same batches, with the same numbers, are in the
// journals of several hosts. Append then writes nothing itself. It hands the batch to a
// replicated log, and AddBatch puts it into the journal of each replica when it is
// committed there. The numbers make that idempotent: a batch that is in the journal is
// not added again, and one that would leave a gap is refused.

// Bounds of a replicated journal, in bytes. A batch becomes an entry of the replicated
// log, which may have 32 MiB. Beyond MaxReplicatedBatch it is cut wherever it may be: a
// large entry holds up those behind it, and the heartbeats. Where it may not be cut it
// has at most one submission, and the rest of a turn.
const (
	MaxReplicatedBatch = 4 << 20
	MaxSubmission      = 16 << 20
)

// ReplicateFunc commits a batch with its number, and returns when AddBatch has put it
// into this journal. After an error it is unknown whether the batch is committed.
type ReplicateFunc func(number uint64, batch []byte) error

// ErrStale reports that the journal has batches of another leader, or lacks some.
var ErrStale = fmt.Errorf("%w: the journal is not at the batch that was expected", roost.Stale)

func (j *Journal) staleError(number, next uint64) error {
	return fmt.Errorf("%s: batch %d, and the next one is %d: %w", j.path, number, next, ErrStale)
}

// OpenReplicated is OpenObserved for a replicated journal. A nil replicate is of a
// replica that does not lead: it has AddBatch, and no Append.
func OpenReplicated(dir, host string, o Observer, replicate ReplicateFunc) (*Journal, *queue.Queue, error) {
	if replicate == nil {
		replicate = func(uint64, []byte) error {
			return fmt.Errorf("%w: this replica does not lead", roost.Unavailable)
		}
	}
	j, q, err := openAt(dir, host, o, nil)
	if err != nil {
		return nil, nil, err
	}
	j.replicate, j.ownNext = replicate, j.log.Next()
	return j, q, nil
}

// appendReplicated has the batch of Append committed.
func (j *Journal) appendReplicated(events int) error {
	number := j.ownNext
	err := j.replicate(number, j.batch)
	j.batch, j.event = limitBuffer(j.batch), limitBuffer(j.event)
	if err != nil {
		return err
	}
	j.ownNext++
	if j.observer != nil {
		j.observer.NoteAppended(events, number)
	}
	return nil
}

// AddBatch puts a committed batch into a replicated journal. It need not be durable when
// it returns, since the replicated log has it: Flush makes it so. A batch that is there
// already, and one after a missing one, give ErrStale.
func (j *Journal) AddBatch(number uint64, batch []byte) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if next := j.log.Next(); number != next {
		return j.staleError(number, next)
	}
	if err := j.log.Write(batch); err != nil {
		return err
	}
	if _, err := j.log.SyncLater(); err != nil {
		return err
	}
	j.size.Add(int64(len(batch)))
	return nil
}

// EachEvent calls f with each event of a batch.
func EachEvent(batch []byte, f func(*queue.JobEvent)) error {
	return eachEvent(batch, func(raw []byte) error {
		e, err := queue.DecodeEvent(cloneBytes(raw))
		if err == nil {
			f(&e)
		}
		return err
	})
}

// ApplyBatch applies the events of a batch to a queue.
func (j *Journal) ApplyBatch(q *queue.Queue, batch []byte) error {
	return j.replayBatch(q, 0, cloneBytes(batch))
}

// AddedCheckpoint is StartCheckpoint for a replica that does not lead. The snapshots
// include all batches of AddBatch so far.
func (j *Journal) AddedCheckpoint(c *QueueCheckpoint) error {
	j.ownNext = j.log.Next()
	return j.StartCheckpoint(c)
}

// Flush makes all batches of AddBatch durable.
func (j *Journal) Flush() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.log.Flush()
}

// The form of an exported journal: the magic, then records. Each begins with a byte that
// says what it is. Numbers and lengths are as in encoding/binary.
const (
	exportMagic = "roostqx1"

	exportedJob     = 'j' // length, key, length, value: a record of bucket jobs
	exportedEvent   = 'v' // the same of bucket events
	exportedCounter = 'c' // the same of bucket counters
	exportedBatch   = 'b' // number, length, events
	exportedEnd     = 'e'
)

var exportedBuckets = map[byte][]byte{exportedJob: bucketJobs, exportedEvent: bucketEvents,
	exportedCounter: bucketCounters}

// Export writes the whole journal as it is at some time during the call.
func (j *Journal) Export(w io.Writer) error {
	j.exporting.RLock()
	defer j.exporting.RUnlock()
	out := &exportWriter{w: bufio.NewWriterSize(w, 256<<10)}
	out.w.WriteString(exportMagic)
	err := j.db.View(func(tx *boltfile.Tx) error {
		for _, kind := range []byte{exportedCounter, exportedJob, exportedEvent} {
			if err := tx.Bucket(exportedBuckets[kind]).ForEach(func(k, v []byte) error {
				return out.write(kind, nil, k, v)
			}); err != nil {
				return err
			}
		}
		next := readCounter(tx.Bucket(bucketCounters), keyNextBatch)
		return j.eachBatch(next, j.log.Next(), func(number uint64, batch []byte) error {
			return out.write(exportedBatch, binary.AppendUvarint(nil, number), batch)
		})
	})
	if err == nil {
		err = out.write(exportedEnd, nil)
	}
	if err == nil {
		err = out.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("%s: export it: %w", j.path, err)
	}
	return nil
}

// exportWriter writes records of an exported journal.
type exportWriter struct {
	w    *bufio.Writer
	head []byte
}

func (e *exportWriter) write(kind byte, number []byte, parts ...[]byte) error {
	_, err := e.w.Write(append(append(e.head[:0], kind), number...))
	for _, p := range parts {
		e.head = binary.AppendUvarint(e.head[:0], uint64(len(p)))
		if _, err = e.w.Write(e.head); err == nil {
			_, err = e.w.Write(p)
		}
	}
	return err
}

// maxExported bounds a part of an exported record, in bytes.
const maxExported = 256 << 20

// Import replaces the journal in dir, which must not be open, by an exported one. The
// caller marks beforehand that it has begun, and begins again after a crash.
func Import(dir, host string, r io.Reader) error {
	path := filepath.Join(dir, FileName)
	if err := RemoveFiles(dir); err != nil {
		return err
	}
	in := &exportReader{r: bufio.NewReaderSize(r, 256<<10)}
	if magic, err := in.bytes(len(exportMagic)); err != nil || string(magic) != exportMagic {
		return fmt.Errorf("%s: %w: what is to replace it is no exported journal (%v)", path, roost.Invalid, err)
	}
	var log *appendlog.Log
	db, err := boltfile.Open(path, fileKind(host), func(db *boltfile.DB) (err error) {
		log, err = in.readAll(db, logDir(path))
		return err
	})
	if err != nil {
		if log != nil {
			err = errors.Join(err, log.Close())
		}
		return fmt.Errorf("%s: replace it: %w", path, err)
	}
	return errors.Join(log.Flush(), log.Close(), db.Close(), atomicfile.SyncDir(dir))
}

// Exists reports whether there is a journal in dir.
func Exists(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RemoveFiles removes the files of a journal that is not open.
func RemoveFiles(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, FileName+"*"))
	for _, file := range files {
		err = errors.Join(err, os.RemoveAll(file))
	}
	return err
}

// exportReader reads an exported journal.
type exportReader struct{ r *bufio.Reader }

func (e *exportReader) bytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(e.r, b)
	return b, err
}

func (e *exportReader) part() ([]byte, error) {
	n, err := binary.ReadUvarint(e.r)
	if err != nil {
		return nil, err
	}
	if n > maxExported {
		return nil, fmt.Errorf("%w: a part of %d bytes, and %d is the most", roost.Invalid, n, maxExported)
	}
	return e.bytes(int(n))
}

// recordsInTransaction bounds the records that are written in one transaction.
const recordsInTransaction = 10_000

// readAll reads the records into db, and the batches into a new log.
func (e *exportReader) readAll(db *boltfile.DB, dir string) (log *appendlog.Log, err error) {
	kind, ended := byte(0), false
	for !ended && kind != exportedBatch {
		if err := db.Update(func(tx *boltfile.Tx) error {
			for range recordsInTransaction {
				if kind, err = e.r.ReadByte(); err != nil || kind == exportedBatch || kind == exportedEnd {
					ended = kind == exportedEnd
					return err
				}
				if err := e.readRecord(tx, kind); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	var id appendlog.ID
	var next uint64
	if err := db.Update(func(tx *boltfile.Tx) error {
		counters := tx.Bucket(bucketCounters)
		if stored := counters.Get(keyLogID); copy(id[:], stored) != len(id) {
			return fmt.Errorf("%w: it does not name its log", roost.Invalid)
		}
		next = readCounter(counters, keyNextBatch)
		tx.SetFormat(logFormat)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := appendlog.Prepare(dir, id, next); err != nil {
		return nil, err
	}
	if log, err = appendlog.Open(dir, id, next, func(uint64, []byte) error { return nil }); err != nil {
		return nil, err
	}
	for !ended {
		number, err := binary.ReadUvarint(e.r)
		if err != nil {
			return log, err
		}
		if ended, err = e.readBatch(log, number); err != nil {
			return log, err
		}
	}
	return log, nil
}

func (e *exportReader) readRecord(tx *boltfile.Tx, kind byte) error {
	bucket, known := exportedBuckets[kind]
	if !known {
		return fmt.Errorf("%w: a record of kind %q", roost.Invalid, kind)
	}
	key, err := e.part()
	if err != nil {
		return err
	}
	value, err := e.part()
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key, value)
}

// readBatch reads a batch after its number, and the kind of the next record.
func (e *exportReader) readBatch(log *appendlog.Log, number uint64) (ended bool, err error) {
	batch, err := e.part()
	if err != nil {
		return false, err
	}
	if number != log.Next() {
		return false, fmt.Errorf("%w: batch %d, and %d is the next", roost.Invalid, number, log.Next())
	}
	if err := log.Write(batch); err != nil {
		return false, err
	}
	if _, err := log.SyncLater(); err != nil {
		return false, err
	}
	kind, err := e.r.ReadByte()
	if err == nil && kind != exportedBatch && kind != exportedEnd {
		err = fmt.Errorf("%w: a record of kind %q among the batches", roost.Invalid, kind)
	}
	return kind == exportedEnd, err
}
