package journal

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// keyRemoved is the key prefix of the records about jobs that a repair removed. They
// inform the next start of the schedd. They are among the counters, where a release that
// does not know them ignores them. The prefix is followed by the job number. The value is
// the time in unix nanoseconds and the path of the damaged log.
var keyRemoved = []byte("removed-job/")

// RemovedJob is a job that a repair removed from the log because its record was damaged.
type RemovedJob struct {
	Seq       uint64
	At        time.Time
	SavedCopy string // path of the damaged log
}

// removedJob parses the job number in the key of a removed job.
func removedJob(key []byte) (seq uint64, is bool) {
	number, is := bytes.CutPrefix(key, keyRemoved)
	if !is || len(number) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(number), true
}

// takenOut lists the jobs that this repair removes.
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

// RemovedJobs lists the jobs that repairs removed since the last ForgetRemovedJobs.
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

// ForgetRemovedJobs deletes the list of removed jobs: the history has them.
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
