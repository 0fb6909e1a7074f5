package queue

import (
	"time"

	"github.com/roost-batch/roost"
)

// What a disk has lost of a job may be the beginning of an attempt, which lives at a node that nobody knows of, until its lease is over. The next attempts of the job
// have numbers above all that it may have had, so that none is taken for another; and that none begins beside it is for who releases the job (see Unsure).

// distrust is how much of a job's past is not believed.
type distrust struct {
	above  roost.Attempt // the highest number that an attempt of the job may have had that is not on record; 0: all are
	unsure bool          // such an attempt may live: nobody has released the job since
}

// Distrust decides to hold a job of whose record something was lost. The numbers of its attempts go on above that one, and above all that it has. False where
// there is no such job.
func (q *Queue) Distrust(now time.Time, seq uint64, above roost.Attempt, reason string) (Event, bool) {
	j := q.jobs[seq]
	if j == nil {
		return Event{}, false
	}
	for i := range j.state {
		if r := j.book.at(i); r != nil {
			above = max(above, r.attempt)
		}
	}
	return Event{What: Held, Time: now.UnixNano(), Job: seq, Reason: reason, Attempt: above}, true
}

// Unsure reports whether an attempt of a job that is not on record may live, and the lease that it has; 0: as the schedd has it.
func (q *Queue) Unsure(seq uint64) (lease time.Duration, unsure bool) {
	j := q.jobs[seq]
	if j == nil {
		return 0, false
	}
	return j.plan.lease, j.distrust.unsure
}

// believe takes in what an event says of it.
func (j *job) believe(e Event) {
	switch {
	case e.What == Held && e.Attempt > 0:
		j.distrust = distrust{max(j.distrust.above, e.Attempt), true}
	case e.What == Released || e.What == Retried:
		j.distrust.unsure = false
	}
}

// nextAttempt is the number of the next attempt of a task.
func (j *job) nextAttempt(i int) roost.Attempt {
	last := j.distrust.above
	if r := j.book.at(i); r != nil {
		last = max(last, r.attempt)
	}
	return last + 1
}

// attemptsOf counts the attempts of a task; those before its job's record was damaged are not known.
func (j *job) attemptsOf(r *record) int {
	if n := r.attempt - j.distrust.above; n > 0 {
		return int(n)
	}
	return int(r.attempt)
}

func (d distrust) append(b []byte) []byte {
	return truth(number(b, sAbove, uint64(d.above)), sUnsure, d.unsure)
}
