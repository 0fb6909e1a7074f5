package journal

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// A repair leaves in the log what it took out, for the schedd that starts next: it lies
// among the counters, where a release that does not know it passes it over. The key is
// this word and the number of the job, the value when it was, in unix nanoseconds, and
// where the damaged log is.
var keyRemoved = []byte("removed-job/")

// RemovedJob is a job that a repair took out of the log because its record was damaged.
type RemovedJob struct {
	Seq  uint64
	At   time.Time
	Kept string // the damaged log, set aside
}

// removedJob reads the number out of a key that is one of a removed job.
func removedJob(key []byte) (seq uint64, is bool) {
	number, is := bytes.CutPrefix(key, keyRemoved)
	if !is || len(number) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(number), true
}

// takenOut lists the jobs that this repair takes out.
func (r *repairState) takenOut(q *queue.Queue) (seqs []uint64) {
	for _, seq := range r.knownJobs() {
		if _, there := q.Status(seq); !there && (r.lostJobs[seq] || r.cutJob(seq)) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

func (r *repairState) writeRemoved(w *boltfile.ReplacementWriter, q *queue.Queue, now time.Time, aside string) {
	for seq, text := range r.removed {
		w.Put(string(bucketCounters), append(cloneBytes(keyRemoved), bigEndian(seq)...), text)
	}
	for _, seq := range r.takenOut(q) {
		w.Put(string(bucketCounters), append(cloneBytes(keyRemoved), bigEndian(seq)...),
			append(bigEndian(uint64(now.UnixNano())), aside...))
	}
}

// RemovedJobs lists the jobs that repairs took out since ForgetRemovedJobs was called
// last.
func (j *Journal) RemovedJobs() (all []RemovedJob, err error) {
	err = j.db.View(func(tx *boltfile.Tx) error {
		return tx.Bucket(bucketCounters).ForEach(func(k, v []byte) error {
			if seq, is := removedJob(k); is && len(v) >= 8 {
				all = append(all, RemovedJob{seq, time.Unix(0, int64(binary.BigEndian.Uint64(v))), string(v[8:])})
			}
			return nil
		})
	})
	return all, err
}

// ForgetRemovedJobs drops the list of them: the history has them.
func (j *Journal) ForgetRemovedJobs(jobs []RemovedJob) error {
	return j.db.Update(func(tx *boltfile.Tx) error {
		for _, job := range jobs {
			if err := tx.Bucket(bucketCounters).Delete(append(cloneBytes(keyRemoved),
				bigEndian(job.Seq)...)); err != nil {
				return err
			}
		}
		return nil
	})
}
