package queue

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// eligibleTime is for how long a job has waited for nothing but machines. A job that is
// held, waits for others or for its time, or whose tasks all run, does not (eligible_time
// and etime of OpenPBS's pbs_job_attributes(7B)). Times are unix nanoseconds.
type eligibleTime eventlog.EligibleTime

// update brings that up to date when tasks of its job have changed their states.
func (e *eligibleTime) update(j *job, now int64) {
	idle := j.counts[roost.Idle] > 0
	switch {
	case idle && e.WaitingSince == 0:
		if e.WaitingSince = now; e.Since == 0 {
			e.Since = now
		}
	case !idle && e.WaitingSince != 0:
		e.Waited += max(now-e.WaitingSince, 0)
		e.WaitingSince = 0
	}
	if !idle && j.active == 0 && !j.isFinal() {
		e.Since = 0
	}
}

// restore is update for a job that comes from a snapshot. A job of a snapshot from before
// this was saved has waited since it was submitted.
func (e *eligibleTime) restore(j *job, saved eventlog.EligibleTime) {
	if idle := j.counts[roost.Idle] > 0; idle && saved.WaitingSince == 0 {
		saved = eventlog.EligibleTime{Since: j.submitted, WaitingSince: j.submitted}
	}
	*e = eligibleTime(saved)
}
