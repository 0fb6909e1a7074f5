package queue

import "github.com/roost-batch/roost"

// eligibleTime is for how long a job has waited for nothing but machines (eligible_time
// and etime of OpenPBS's pbs_job_attributes(7B)): not while it is held, while it waits
// for others or for its time, or while all its tasks run. Times are unix nanoseconds.
type eligibleTime struct {
	since        int64 // since when it could run, and was not held or made to wait since; 0: it is
	waitingSince int64 // a task of it waits so since then; 0: none does
	waited       int64 // how long it did before that, in nanoseconds
}

// update brings that up to date when tasks of its job have changed their states.
func (e *eligibleTime) update(j *job, now int64) {
	idle := j.counts[roost.Idle] > 0
	switch {
	case idle && e.waitingSince == 0:
		if e.waitingSince = now; e.since == 0 {
			e.since = now
		}
	case !idle && e.waitingSince != 0:
		e.waited += max(now-e.waitingSince, 0)
		e.waitingSince = 0
	}
	if !idle && j.active == 0 && !j.isFinal() {
		e.since = 0
	}
}

// append adds it to a snapshot.
func (e *eligibleTime) append(b []byte) []byte {
	return appendNumber(appendNumber(appendNumber(b, sEligibleSince, uint64(e.since)), sWaitingSince,
		uint64(e.waitingSince)), sWaited, uint64(e.waited))
}

// restore is update for a job that comes from a snapshot. A job of a snapshot from before
// this was saved has waited since it was submitted.
func (e *eligibleTime) restore(j *job, saved eligibleTime) {
	if idle := j.counts[roost.Idle] > 0; idle && saved.waitingSince == 0 {
		saved = eligibleTime{since: j.submitted, waitingSince: j.submitted}
	}
	*e = saved
}
