// Package history keeps the jobs that have left a schedd's queue: each with all that was
// ever known of it and all that happened to it, in a bbolt file of its own, until it is
// older than the schedd is told to remember.
//
// A job goes into the history before it leaves the queue, and going in twice is harmless,
// so a crash between the two loses and doubles nothing.
package history

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// FileName is the file in the schedd's directory.
const FileName = "history.db"

var (
	bucketJobs   = []byte("jobs")   // job number -> record
	bucketKeys   = []byte("keys")   // submit key, 0, job number -> nothing
	bucketOwners = []byte("owners") // owner, 0, job number -> nothing
	bucketRows   = []byte("rows")   // job number -> what lists tell of it
	bucketEnded  = []byte("ended")  // when it ended, job number -> nothing
)

// History is an open history. Its methods may be called by any goroutine.
type History struct {
	db   *boltfile.DB
	path string
	host string
}

// JobRecord is a job as it left the queue.
type JobRecord struct {
	Seq      uint64
	Key      string // its submit key, as the queue knows it
	Ended    time.Time
	Snapshot []byte
	Events   []queue.JobEvent
	Row      *table.JobRow // without its ad, which is in the snapshot; nil in one that was read
}

// Open opens the history in dir, and makes one where there is none.
func Open(dir, host string) (*History, error) {
	h := &History{path: filepath.Join(dir, FileName), host: host}
	var err error
	if h.db, err = boltfile.Open(h.path, fileKind(host), nil); err != nil {
		return nil, err
	}
	return h, nil
}

// Close closes the file.
func (h *History) Close() error { return h.db.Close() }

// Add puts jobs into the history; they are on disk when it returns.
func (h *History) Add(records []JobRecord) error {
	err := h.db.Update(func(tx *boltfile.Tx) error {
		jobs, keys, owners := tx.Bucket(bucketJobs), tx.Bucket(bucketKeys), tx.Bucket(bucketOwners)
		for i := range records {
			r := &records[i]
			if owner, known := snapshotOwner(r.Snapshot); known {
				if err := owners.Put(submitKeyPrefix(owner, r.Seq), nil); err != nil {
					return err
				}
			}
			if err := addEnd(tx, r.Seq, r.Ended); err != nil {
				return err
			}
			if err := jobs.Put(bigEndian(r.Seq), r.encode()); err != nil {
				return err
			}
			if r.Row != nil {
				if err := tx.Bucket(bucketRows).Put(bigEndian(r.Seq), encodeRow(r.Row)); err != nil {
					return err
				}
			}
			if err := keys.Put(submitKeyPrefix(r.Key, r.Seq), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	return nil
}

// Each calls f with the jobs of the history, newest first, until f returns false. The
// queue that f gets holds that job and nothing else, so that all that can be asked of a
// queue can be asked of the past.
func (h *History) Each(f func(seq uint64, past *queue.Queue) bool) error {
	return h.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketJobs).Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			r, err := decodeRecord(v)
			if err != nil {
				return fmt.Errorf("%s: job %d: %w", h.path, binary.BigEndian.Uint64(k), err)
			}
			past, err := h.readRecord(r)
			if err != nil {
				return fmt.Errorf("job %d: %w", binary.BigEndian.Uint64(k), err)
			}
			if !f(binary.BigEndian.Uint64(k), past) {
				return nil
			}
		}
		return nil
	})
}

// Job returns one job of the history, in a queue of its own, and what happened to it.
func (h *History) Job(seq uint64) (past *queue.Queue, events []queue.JobEvent, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		v := tx.Bucket(bucketJobs).Get(bigEndian(seq))
		if v == nil {
			return fmt.Errorf("job %v: %w", roost.JobID{Seq: seq, Host: h.host}, roost.NotFound)
		}
		r, err := decodeRecord(v)
		if err == nil {
			past, err = h.readRecord(r)
			events = r.Events
		}
		return err
	})
	return past, events, err
}

func (h *History) readRecord(r *JobRecord) (*queue.Queue, error) {
	past := queue.New(h.host)
	if err := past.RestoreSnapshot(r.Snapshot); err != nil {
		return nil, fmt.Errorf("%s: %w", h.path, err)
	}
	return past, nil
}

// JobsByKey lists the jobs that were submitted with that key.
func (h *History) JobsByKey(key string) (seqs []uint64, err error) {
	prefix := submitKeyPrefix(key, 0)[:len(key)+1]
	err = h.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketKeys).Cursor()
		for k, _ := c.Seek(prefix); len(k) == len(prefix)+8 &&
			string(k[:len(prefix)]) == string(prefix); k, _ = c.Next() {
			seqs = append(seqs, binary.BigEndian.Uint64(k[len(prefix):]))
		}
		return nil
	})
	return seqs, err
}

// snapshotOwner reads whose job a snapshot is of. One that makes no sense has no owner,
// and is kept all the same.
func snapshotOwner(snapshot []byte) (owner string, known bool) {
	admitted, err := queue.DecodeSubmission(snapshot)
	if err != nil || admitted.Submission == nil {
		return "", false
	}
	return admitted.Submission.Owner, true
}

// LastOf returns the newest job of an owner.
func (h *History) LastOf(owner string) (seq uint64, found bool, err error) {
	prefix := submitKeyPrefix(owner, 0)[:len(owner)+1]
	err = h.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketOwners).Cursor()
		k, _ := c.Seek(append([]byte(owner), 1)) // the first key behind all of the owner's
		if k == nil {
			k, _ = c.Last()
		} else {
			k, _ = c.Prev()
		}
		if found = len(k) == len(prefix)+8 && string(k[:len(prefix)]) == string(prefix); found {
			seq = binary.BigEndian.Uint64(k[len(prefix):])
		}
		return nil
	})
	return seq, found, err
}

// LastSeq is the highest number of a job in the history, 0 when it is empty.
func (h *History) LastSeq() (last uint64) {
	h.db.View(func(tx *boltfile.Tx) error {
		if k, _ := tx.Bucket(bucketJobs).Cursor().Last(); k != nil {
			last = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return last
}

// Remove removes jobs by number, with nothing left of them.
func (h *History) Remove(seqs ...uint64) error {
	return h.db.Update(func(tx *boltfile.Tx) error {
		jobs, keys, owners := tx.Bucket(bucketJobs), tx.Bucket(bucketKeys), tx.Bucket(bucketOwners)
		for _, seq := range seqs {
			v := jobs.Get(bigEndian(seq))
			if v == nil {
				continue
			}
			if r, err := decodeRecord(v); err == nil {
				if err := keys.Delete(submitKeyPrefix(r.Key, seq)); err != nil {
					return err
				}
				if owner, known := snapshotOwner(r.Snapshot); known {
					if err := owners.Delete(submitKeyPrefix(owner, seq)); err != nil {
						return err
					}
				}
			}
			if err := removeEnd(tx, seq); err != nil {
				return err
			}
			if err := jobs.Delete(bigEndian(seq)); err != nil {
				return err
			}
			if err := tx.Bucket(bucketRows).Delete(bigEndian(seq)); err != nil {
				return err
			}
		}
		return nil
	})
}

// EndedBefore lists jobs that ended before then, oldest first, at most limit of them.
func (h *History) EndedBefore(then time.Time, limit int) (seqs []uint64, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		c := tx.Bucket(bucketJobs).Cursor()
		for k, v := c.First(); k != nil && len(seqs) < limit; k, v = c.Next() {
			if len(v) < 8 || time.Unix(0, int64(binary.BigEndian.Uint64(v))).Before(then) {
				seqs = append(seqs, binary.BigEndian.Uint64(k))
			}
		}
		return nil
	})
	return seqs, err
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func submitKeyPrefix(key string, seq uint64) []byte {
	return append(append([]byte(key), 0), bigEndian(seq)...)
}
