package schedd

import (
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// Of a job that a repair took out of the log nothing is certain but its number. Its user
// still asks what became of it, so the history gets a record that says that.

// unknownOwner is the owner of a job whose record was damaged.
const unknownOwner = "unknown"

// recordTakenOut puts the jobs that repairs took out into the history.
func (j *jobArchive) recordTakenOut() error {
	jobs, err := j.journal.RemovedJobs()
	if err != nil || len(jobs) == 0 {
		return err
	}
	var records []history.JobRecord
	for i := range jobs {
		if _, there := j.queue.Status(jobs[i].Seq); there {
			continue
		}
		if _, _, err := j.history.Job(jobs[i].Seq); !errors.Is(err, roost.NotFound) {
			continue // it had ended before
		}
		records = append(records, j.takenOut(&jobs[i]))
		j.log.Warn("a job was taken out by a repair", "job", roost.JobID{Seq: jobs[i].Seq, Host: j.node.Name}, "at",
			jobs[i].At, "kept", jobs[i].SavedCopy)
	}
	if err := j.history.Add(records); err != nil {
		return err
	}
	return j.journal.ForgetRemovedJobs(jobs)
}

// takenOut is the record of such a job: it looks like one that was removed when the
// repair was made.
func (j *jobArchive) takenOut(job *journal.RemovedJob) history.JobRecord {
	reason := fmt.Sprintf("taken out by a repair on %s: its record was damaged; the damaged log is kept as %s, and "+
		"the job's script, if it had a file, below %s for %d days: submit it again",
		job.At.Format(time.DateTime), job.SavedCopy, j.stateDir+"/scripts",
		int(transfer.UnusedScriptAge/(24*time.Hour)))
	at := job.At.UnixNano()
	admitted := queue.JobEvent{Type: queue.Submitted, Time: at, Job: job.Seq, Submission: &queue.SubmittedJob{
		Key: fmt.Sprintf("taken-out/%d", job.Seq), PartCount: 1, Owner: unknownOwner, UID: api.UnknownUID,
		GID: api.UnknownUID,
		Ad:  `[Cmd = "/bin/false"; JobName = "unknown"]`, Count: 1,
	}}
	dropped := queue.JobEvent{Type: queue.Dropped, Time: at, Job: job.Seq, Reason: reason}
	q := queue.New(j.node.Name)
	q.Apply(admitted)
	q.Apply(dropped)
	snapshot, _ := q.Snapshot(job.Seq)
	key, _ := q.SubmitKey(job.Seq)
	return history.JobRecord{Seq: job.Seq, Key: key, Ended: job.At, Snapshot: snapshot,
		Events: []queue.JobEvent{dropped}}
}
