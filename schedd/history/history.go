// Package history stores the jobs that have left a schedd's queue. It stores each job
// with all its data and all its events in a bbolt file, until the configured retention
// time is over.
//
// A job enters the history before it leaves the queue, and adding it twice is harmless,
// so a crash between the two neither loses nor duplicates a job.
package history

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// FileName is the name of the file in the schedd's directory.
const FileName = "history.db"

var (
	bucketJobs   = []byte("jobs")   // job number -> record
	bucketKeys   = []byte("keys")   // submit key, 0, job number -> nothing
	bucketOwners = []byte("owners") // owner, 0, job number -> nothing
	bucketRows   = []byte("rows")   // job number -> its row in lists
	bucketEnded  = []byte("ended")  // end time, job number -> nothing
)

// History is an open history. Any goroutine may call its methods.
type History struct {
	db   *boltfile.DB
	path string
	host string
}

// JobRecord is a job as it left the queue.
type JobRecord struct {
	Seq      uint64
	Key      string // its submit key, as in the queue
	Ended    time.Time
	Snapshot []byte
	Events   []queue.JobEvent
	Row      *table.JobRow // without the job's ad, which is in the snapshot; nil in a record that was read
}

// Open opens the history in dir, and creates it if there is none.
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

// Add adds jobs to the history and syncs them to disk.
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
// queue that f receives contains only that job, so that every query of a queue also works
// for the history.
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

// find returns the record of a job, or of the array whose task has the number. It is nil
// if there is none.
func (h *History) find(tx *boltfile.Tx, number uint64) (seq uint64, record []byte) {
	jobs := tx.Bucket(bucketJobs)
	if v := jobs.Get(bigEndian(number)); v != nil {
		return number, v
	}
	c := jobs.Cursor()
	k, _ := c.Seek(bigEndian(number))
	if k == nil {
		k, record = c.Last()
	} else {
		k, record = c.Prev()
	}
	if k == nil {
		return number, nil
	}
	if seq = binary.BigEndian.Uint64(k); number-seq >= numbersOf(record) {
		return number, nil
	}
	return seq, record
}

// numbersOf is how many numbers the tasks of a record's job take, with its own.
func numbersOf(record []byte) uint64 {
	r, err := decodeRecord(record)
	if err != nil {
		return 1
	}
	admitted, err := queue.DecodeSubmission(r.Snapshot)
	if err != nil || admitted.Submission == nil || !strings.Contains(admitted.Submission.Ad, roost.AttrSlurm+" = [") {
		return 1
	}
	return queue.NumbersOf(admitted.Submission)
}

// Job returns one job of the history, in a queue of its own, and its events. It may be
// named by the number of a task, see queue.LocateTasks.
func (h *History) Job(seq uint64) (past *queue.Queue, events []queue.JobEvent, err error) {
	err = h.db.View(func(tx *boltfile.Tx) error {
		_, v := h.find(tx, seq)
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

// snapshotOwner returns the owner of the job in a snapshot. An invalid snapshot has no
// owner and is stored all the same.
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
		k, _ := c.Seek(append([]byte(owner), 1)) // the first key after all keys of the owner
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

// LastSeq returns the highest number of a job, or of a task, in the history; 0 if it is
// empty.
func (h *History) LastSeq() (last uint64) {
	h.db.View(func(tx *boltfile.Tx) error {
		if k, record := tx.Bucket(bucketJobs).Cursor().Last(); k != nil {
			last = binary.BigEndian.Uint64(k) + numbersOf(record) - 1
		}
		return nil
	})
	return last
}

// Remove deletes jobs by number, with all their index entries.
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

// EndedBefore lists up to limit jobs that ended before then, in job number order.
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
