package queue

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// What a disk has lost of a job may be the beginning of an attempt, which lives at a node
// that nobody knows of, until its lease is over. The next attempts of the job have
// numbers above all that it may have had, so that none is taken for another; and that
// none begins beside it is for who releases the job (see UnrecordedLease).

// recordDamage is how much of a job's past is not believed.
type recordDamage eventlog.RecordDamage

// HoldDamaged decides to hold a job of whose record something was lost. The numbers of
// its attempts go on above that one, and above all that it has. False where there is no
// such job.
func (q attemptDecisions) HoldDamaged(now time.Time, seq uint64, above roost.AttemptNumber,
	reason string) (eventlog.JobEvent, bool) {
	j := q.jobs[seq]
	if j == nil {
		return eventlog.JobEvent{}, false
	}
	for i := range j.state {
		if r := j.records.Get(i); r != nil {
			above = max(above, r.Attempt)
		}
	}
	return eventlog.JobEvent{Type: eventlog.Held, Time: now.UnixNano(), Job: seq, Reason: reason, Attempt: above}, true
}

// UnrecordedLease reports whether an attempt of a job may live that is not on record, and
// its lease. A lease of 0 is that of the schedd.
func (q *jobTable) UnrecordedLease(seq uint64) (lease time.Duration, unsure bool) {
	j := q.jobs[seq]
	if j == nil {
		return 0, false
	}
	return j.spec.Lease, j.distrust.AttemptMayLive
}

// after returns what it is after an event.
func (d recordDamage) after(e eventlog.JobEvent) recordDamage {
	switch {
	case e.Type == eventlog.Held && e.Attempt > 0:
		return recordDamage{MaxUnrecorded: max(d.MaxUnrecorded, e.Attempt), AttemptMayLive: true}
	case e.Type == eventlog.Released || e.Type == eventlog.Retried:
		d.AttemptMayLive = false
	}
	return d
}

// nextAttempt is the number of the next attempt of a task, by its record; nil for none.
func (d *recordDamage) nextAttempt(r *eventlog.TaskRecord) roost.AttemptNumber {
	last := d.MaxUnrecorded
	if r != nil {
		last = max(last, r.Attempt)
	}
	return last + 1
}

// attemptCount counts the attempts of a task; those before its job's record was damaged
// are not known.
func (d *recordDamage) attemptCount(r *eventlog.TaskRecord) int {
	if n := r.Attempt - d.MaxUnrecorded; n > 0 {
		return int(n)
	}
	return int(r.Attempt)
}
