package queue

import "github.com/roost-batch/roost"

// eligible is for how long a job has waited for nothing but machines (eligible_time and etime of OpenPBS's pbs_job_attributes(7B)): not while it is held, while
// it waits for others or for its time, or while all its tasks run. Times are unix nanoseconds.
type eligible struct {
	entered int64 // since when it could run, and was not held or made to wait since; 0: it is
	since   int64 // a task of it waits so since then; 0: none does
	total   int64 // how long it did before that, in nanoseconds
}

// entitle brings that up to date when tasks have changed their states.
func (j *job) entitle(now int64) {
	e, idle := &j.eligible, j.counts[roost.Idle] > 0
	switch {
	case idle && e.since == 0:
		if e.since = now; e.entered == 0 {
			e.entered = now
		}
	case !idle && e.since != 0:
		e.total += max(now-e.since, 0)
		e.since = 0
	}
	if !idle && j.active == 0 && !j.final() {
		e.entered = 0
	}
}

// append adds it to a snapshot.
func (e *eligible) append(b []byte) []byte {
	return number(number(number(b, sEntered, uint64(e.entered)), sWaiting, uint64(e.since)), sWaited, uint64(e.total))
}

// recall is entitle for a job that comes from a snapshot. One that was written before this was kept has waited since it was submitted.
func (j *job) recall(saved eligible) {
	if idle := j.counts[roost.Idle] > 0; idle && saved.since == 0 {
		saved = eligible{entered: j.submitted, since: j.submitted}
	}
	j.eligible = saved
}
