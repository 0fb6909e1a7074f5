package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// A job may be one program that has several machines, as PBS has it: then its tasks are one gang, of which the first leads. It runs the program; the
// others hold what they have of their machines, where the program starts processes of its own (pbsdsh). To its user it is one job of one task:
//
//	the leader ends for good      the others are told to end, and stand for done however they do
//	another ends for good         the leader is told to end, and fails with that
//	any is interrupted            all are made again, as in any gang
//
// Whatever is asked of such a job is asked of all of its tasks, but for signals, which are the program's.
//
// An array of such programs has a gang for each, one behind the other. To its user it has as many tasks as it has gangs, and the indexes that he gave are theirs.

// leads reports whether a task leads the others of its gang.
func (j *job) leads(i int) bool { return j.plan.led && i == j.head(i) }

// follows reports whether a task holds what it has for the leader of its gang.
func (j *job) follows(i int) bool { return j.plan.led && i != j.head(i) }

// head is the task that leads the gang of another; of a job that none leads, the task itself.
func (j *job) head(i int) int {
	if !j.plan.led {
		return i
	}
	return i - i%j.plan.gang
}

// tail is the last task of the gang that one leads.
func (j *job) tail(head int) int { return head + j.plan.gang - 1 }

// stride is how many tasks have one index of an array between them.
func (j *job) stride() int { return j.plan.stride() }

func (p *plan) stride() int {
	if p.led && p.array && p.gang > 1 {
		return p.gang
	}
	return 1
}

// whole is what is meant where something is asked of some tasks of a job.
func (j *job) whole(t Target) Target {
	switch {
	case !j.plan.led:
		return t
	case j.plan.gang == len(j.state):
		t.Ranges = nil
		return t
	}
	var gangs []Range
	for _, r := range t.Ranges {
		first, last := j.head(r.First), j.tail(j.head(r.Last))
		if n := len(gangs); n > 0 && first <= gangs[n-1].Last+1 {
			gangs[n-1].Last = max(gangs[n-1].Last, last)
		} else {
			gangs = append(gangs, Range{first, last})
		}
	}
	t.Ranges = gangs
	return t
}

// fallen is the first task of a gang that follows and has ended for good while its leader has not; -1 for none.
func (j *job) fallen(head int) int {
	if !j.plan.led || j.state[head].Final() || j.counts[roost.Completed] == 0 {
		return -1
	}
	for i := head + 1; i <= j.tail(head); i++ {
		if j.state[i] == roost.Completed {
			return i
		}
	}
	return -1
}

// concluded takes in that an attempt of a task has ended when the end of its job is settled already, and reports whether it was.
func (q *Queue) concluded(j *job, i int, r *record) bool {
	head := j.head(i)
	switch k := j.fallen(head); {
	case j.follows(i) && j.state[head].Final():
		q.rest(j, i)
		return true
	case j.leads(i) && k >= 0 && !r.removed && !(r.exit != nil && r.exit.Success()):
		q.fellWith(j, r, k)
		q.complete(j, i, true)
		return true
	}
	return false
}

// fellWith has the leader fail with what another of its gang has failed with.
func (q *Queue) fellWith(j *job, r *record, k int) {
	with := j.book.at(k)
	x := Exit{}
	if r.exit != nil {
		x = *r.exit
	}
	x.Code, x.Signal, x.Core, x.Cause = with.exit.Code, with.exit.Signal, false, with.exit.Cause
	if x.Success() { // which is too early, and none of the leader's
		x.Signal = sigkill
	}
	x.Reason = fmt.Sprintf("chunk %d of it, on %s, has ended: %s", k-j.head(k), with.node, with.exit.Text())
	r.exit = &x
}

// retryLed has gangs run again whose leaders, or parts before these, have failed: all of each, as what has not failed has no program of its own.
func (j *job) retryLed(t Target, events []Event) ([]Event, error) {
	ending := false
	var failed []Range
	j.whole(t).each(len(j.state), func(i int) {
		if !j.leads(i) {
			return
		}
		bad := false
		for k := i; k <= j.tail(i); k++ {
			bad = bad || j.state[k] == roost.Removed || j.state[k] == roost.Completed && !j.book.succeeded(k)
		}
		switch over := j.gangs.open[i/j.plan.gang] == 0; {
		case bad && over:
			failed = append(failed, Range{i, j.tail(i)})
		case j.state[i].Final() && !over:
			ending = true
		}
	})
	switch {
	case len(failed) == 0 && ending:
		return nil, fmt.Errorf("%v: %w: %s", t, roost.Conflict, endingReason)
	case len(failed) == 0:
		return nil, noneFailed(t)
	}
	events[0].Ranges = j.whole(Target{Ranges: failed}).Ranges
	return events, nil
}

// sigkill is the number of the signal that ends whatever gets it, on Linux.
const sigkill = 9

// ledEnded has the others of a led gang follow one that has ended for good.
func (q *Queue) ledEnded(j *job, i int) {
	head := j.head(i)
	switch {
	case j.leads(i):
		for k := i + 1; k <= j.tail(i); k++ {
			q.dismiss(j, k)
		}
	case j.follows(i) && j.state[head].Active():
		q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, head), Reason: fmt.Sprintf("chunk %d of it has ended", i-head)})
	case j.follows(i) && !j.state[head].Final():
		r := j.of(head)
		q.fellWith(j, r, i)
		q.complete(j, head, true)
	}
}

// dismiss ends a task whose leader has ended.
func (q *Queue) dismiss(j *job, k int) {
	switch s := j.state[k]; {
	case s.Active():
		q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, k), Fast: true, Reason: "its job has ended"})
	case !s.Final():
		q.rest(j, k)
	}
}

// rest makes a task final that has followed its leader to the end. It had no program that could have failed.
func (q *Queue) rest(j *job, k int) {
	r := j.of(k)
	x := Exit{}
	if r.exit != nil {
		x = Exit{Wall: r.exit.Wall, User: r.exit.User, System: r.exit.System, MaxRSS: r.exit.MaxRSS, Used: r.exit.Used}
	}
	r.exit, r.held, r.removed = &x, false, false
	q.dropAll(j, k)
	q.transition(j, k, roost.Completed)
}

// mendLed asks again for what a led gang has coming: the schedd may have ended before it could say so.
func (q *Queue) mendLed(j *job) {
	if !j.plan.led || j.final() {
		return
	}
	for head := 0; head < len(j.state); head += j.plan.gang {
		if j.state[head].Final() {
			q.ledEnded(j, head)
		} else if k := j.fallen(head); k >= 0 && j.state[head].Active() {
			q.ledEnded(j, k)
		}
	}
}

// standTogether has the others of a led gang stand still with one whose machine's owner is back, and go on when none is: a program whose parts wait for each
// other would only burn its walltime. Their states are as they were, as nobody stands in their own way.
func (q *Queue) standTogether(j *job, i int) {
	if !j.plan.led {
		return
	}
	for k := j.head(i); k <= j.tail(j.head(i)); k++ {
		if j.state[k] == roost.Running && (k != i || j.stilled(i)) {
			j.of(k).saved().frozen = true
			q.frozen = append(q.frozen, Freeze{q.attemptOf(j, k), j.stilled(k)})
		}
	}
}

// stilled reports whether a task stands still for the owner of another machine of its job.
func (j *job) stilled(i int) bool { k := j.owned(j.head(i)); return k >= 0 && k != i }

// owned is the first task of a led gang that stands still for the owner of its machine; -1 for none.
func (j *job) owned(head int) int {
	if j.plan.led && j.counts[roost.Suspended] > 0 {
		for k := head; k <= j.tail(head); k++ {
			if j.byOwner(k) {
				return k
			}
		}
	}
	return -1
}

// Counting is as what limits count the tasks of a request.
type Counting uint8

// As jobs of their own, together as one job, or not, because another request is that job's first.
const (
	Apart Counting = iota
	Together
	Elsewhere
)

// Counting says as what limits on what runs count the tasks of a request: several of a program that has several machines are one job, or one task of an array.
func (q *Queue) Counting(id RequestID) Counting {
	r := q.requests[id]
	if r == nil || r.led == 0 {
		return Apart
	}
	if j := q.jobs[r.led]; j != nil && j.class(r.subjob*j.plan.gang).request != r {
		return Elsewhere
	}
	return Together
}
