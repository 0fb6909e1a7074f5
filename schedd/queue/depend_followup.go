package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// Followups decides what follows for jobs that wait for others or for their time. They
// are unblocked, or dropped when what they wait for cannot come any more. Asking twice is
// harmless.
func (q *dependencyIndex) Followups(now time.Time) (events []eventlog.JobEvent) {
	for seq := range q.startTimes {
		if now.Unix() >= q.jobs[seq].spec.StartAfter {
			q.toResolve[seq] = true
		}
	}
	for _, seq := range takeAll(&q.toResolve) {
		if j := q.jobs[seq]; j != nil && !j.isFinal() {
			events = append(events, q.followup(now, j)...)
		}
	}
	return events
}

func (q *dependencyIndex) followup(now time.Time, j *job) []eventlog.JobEvent {
	drop := func(text string, other uint64) []eventlog.JobEvent {
		return []eventlog.JobEvent{{Type: eventlog.Dropped, Time: now.UnixNano(), Job: j.seq,
			Reason: q.dropReason(j, text, other)}}
	}
	for _, seq := range j.runOneSet {
		if o := q.jobs[seq]; o == nil || o.isFinal() && o.hasRun() { // who did not run is no rival any more
			return drop("only one of it and job %d was to run, and that has ended", seq)
		}
	}
	open := 0
	for _, w := range j.dependencies {
		// A job that has left the queue was final when it did, and its dependants were
		// ripe before that.
		met, dead, err := q.dependencyState(w, SubmitLimits{})
		switch {
		case dead || err != nil || met && q.neverRan(j, w):
			return drop("it was to run "+w.Type.String()+" job %d, and that has ended otherwise", w.Job)
		case !met:
			open++
		}
	}
	if open == 0 && j.expectedBefore == 0 && j.expectedSync == 0 && now.Unix() >= j.spec.StartAfter &&
		(len(j.dependencies) > 0 || !j.startTimeReached) {
		return []eventlog.JobEvent{{Type: eventlog.Unblocked, Time: now.UnixNano(), Job: j.seq}}
	}
	return nil
}

// neverRan reports whether a job of qsub waits for one that was removed while held or
// blocked. Such a removal takes all jobs with it that wait for the end, or the failure,
// of that one (OpenPBS, depend_on_term). Other jobs run when such a one is gone.
func (q *dependencyIndex) neverRan(j *job, w eventlog.JobDependency) bool {
	other := q.jobs[w.Job]
	return j.spec.FromQsub && other != nil && other.removedUnstarted && !other.hasRun() && w.Count == 0 &&
		(w.Type == eventlog.AfterAny || w.Type == eventlog.AfterNotOK)
}

// dropReason says why a job is dropped. Clients of PBS look for its sentence.
func (q *dependencyIndex) dropReason(j *job, text string, other uint64) string {
	if j.spec.FromQsub {
		return fmt.Sprintf("Job deleted as result of dependency on job %v", roost.JobID{Seq: other, Host: q.host})
	}
	return fmt.Sprintf(text, other)
}
