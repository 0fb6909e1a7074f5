package queue

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Apply folds an event into the state. It panics on one that the state does not allow: what stands in the log was decided on this very state.
func (q *Queue) Apply(e Event) {
	if e.What == Submitted {
		q.admit(&e)
		return
	}
	j := q.jobs[e.Job]
	if j == nil {
		illegal("%v of job %d, which is not there", e.What, e.Job)
	}
	q.note(j)
	switch e.What {
	case Assigned:
		q.assigned(j, &e)
	case Started:
		r := q.current(j, &e)
		r.started, r.machine = e.Time, 0
		q.become(j, e.Index, roost.Running)
		if j.started == 0 {
			j.started = e.Time
			q.resolve(j, e.Time)
		}
	case Ended:
		q.over(j, &e, judgeEnd(j, q.current(j, &e), e.Exit))
	case Lost:
		q.over(j, &e, judgeLoss(j, q.current(j, &e), e.Reason))
	case Held:
		j.each(e.Ranges, func(i int) { q.hold(j, i, &e) })
	case Released:
		j.each(e.Ranges, func(i int) { q.release(j, i) })
	case RemovalRequested:
		j.each(e.Ranges, func(i int) { q.remove(j, i, &e) })
		q.settled(j, e.Time)
	case Retried:
		j.each(e.Ranges, func(i int) { q.retry(j, i) })
	case Due:
		j.due = true
		q.unblock(j)
	case Purged:
		q.purge(j)
	default:
		illegal("%v cannot be applied", e.What)
	}
}

// admit takes a job in.
func (q *Queue) admit(e *Event) {
	if e.Job <= q.lastSeq {
		illegal("job %d is submitted after job %d", e.Job, q.lastSeq)
	}
	s := *e.Submission
	j := &job{seq: e.Job, sub: &s, submitted: e.Time}
	if err := j.read(); err != nil {
		illegal("job %d: %v", e.Job, err)
	}
	q.lastSeq = e.Job
	j.due = j.plan.startAfter == 0 || j.plan.startAfter <= e.Time/1e9
	j.waits = slices.Clone(s.Waits)
	state := roost.Idle
	switch {
	case j.plan.hold:
		state = roost.Held
	case j.blocked():
		state = roost.Blocked
	}
	j.state = make([]roost.TaskState, s.Count)
	for i := range j.state {
		j.state[i] = state
	}
	q.enter(j)
	q.changes += s.Count
	q.note(j)
	q.met(j, e.Time) // a parent may have ended since it was decided
}

// read fills in what follows from the submission: the plan, the columns and the classes, without requests.
func (j *job) read() error {
	ad, err := classad.Parse(j.sub.Ad)
	if err != nil {
		return err
	}
	if j.plan, err = readPlan(ad, j.sub.Count); err != nil {
		return err
	}
	for _, c := range j.sub.Columns {
		j.columns = append(j.columns, pack(c))
	}
	j.sub.Columns = nil
	kinds, of, err := classes(&j.plan, j.sub.Count, j.columns)
	if err != nil {
		return err
	}
	j.classOf = of
	for _, o := range kinds {
		j.classes = append(j.classes, &class{job: j, plan: o, place: -1, ready: newBitmap(j.sub.Count)})
	}
	return nil
}

// enter counts a job whose states are set into everything.
func (q *Queue) enter(j *job) {
	q.jobs[j.seq] = j
	q.keys[j.sub.Key] = append(q.keys[j.sub.Key], j.seq)
	for _, c := range j.classes {
		c.request = q.join(j, c.plan)
	}
	for i, s := range j.state {
		j.counts[s]++
		if s == roost.Idle {
			j.class(i).ready.set(i)
		}
		if s.Active() {
			j.active++
		}
	}
	q.active += j.active
	q.tasks += len(j.state) - j.counts[roost.Completed] - j.counts[roost.Removed]
	for _, c := range j.classes {
		q.settle(c)
	}
	for _, w := range j.waits {
		if q.dependents[w.Job] == nil {
			q.dependents[w.Job] = map[uint64]struct{}{}
		}
		q.dependents[w.Job][j.seq] = struct{}{}
	}
	if !j.due {
		heap.Push(&q.timers, timer{j.plan.startAfter, j.seq})
	}
	if j.final() {
		q.done[j.seq] = struct{}{}
	}
}

func (q *Queue) assigned(j *job, e *Event) {
	r := j.record(e.Index)
	if r.live || e.Attempt != r.attempt+1 {
		illegal("attempt %d of %v is assigned after %d (live: %v)", e.Attempt, j.id(q.host).Task(e.Index), r.attempt, r.live)
	}
	r.attempt, r.live, r.node, r.address, r.claim = e.Attempt, true, e.Node, e.Address, e.Claim
	r.assigned, r.started, r.ended, r.want, r.reason, r.by = e.Time, 0, 0, roost.Running, "", ""
	q.become(j, e.Index, roost.Starting)
}

// current is the record of the attempt that an event is about.
func (q *Queue) current(j *job, e *Event) *record {
	r := j.records[e.Index]
	if r == nil || !r.live || r.attempt != e.Attempt {
		illegal("%v of attempt %d of %v, which is not live", e.What, e.Attempt, j.id(q.host).Task(e.Index))
	}
	return r
}

// over ends the live attempt of a task as judged.
func (q *Queue) over(j *job, e *Event, v verdict) {
	r := j.records[e.Index]
	r.live, r.ended = false, e.Time
	if e.Exit != nil {
		x := *e.Exit
		r.exit = &x
	}
	if v.reason != "" {
		r.reason, r.code = v.reason, v.code
	}
	if v.own {
		r.own++
	}
	if v.machine {
		r.machine++
	}
	if v.state == roost.Completed && !r.exit.Success() {
		j.failed++
	}
	if v.state == roost.Idle && j.blocked() {
		v.state = roost.Blocked
	}
	r.want, r.address, r.claim = roost.Running, "", 0
	q.become(j, e.Index, v.state)
	q.settled(j, e.Time)
}

func (q *Queue) hold(j *job, i int, e *Event) {
	s := j.state[i]
	if s.Final() || s == roost.Held {
		return
	}
	r := j.record(i)
	if s.Active() {
		if r.want == roost.Removed || r.want == roost.Held {
			return
		}
		r.want = roost.Held
		q.changes++
		q.vacates = append(q.vacates, Vacate{roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}, false, e.Reason})
	}
	r.reason, r.by, r.code = e.Reason, e.By, e.Code
	if !s.Active() {
		q.become(j, i, roost.Held)
	}
}

func (q *Queue) release(j *job, i int) {
	r := j.records[i]
	if j.state[i].Active() && r.want == roost.Held {
		r.want, r.reason, r.by, r.code = roost.Running, "", "", 0 // it may run again when it has ended
		q.changes++
	}
	if j.state[i] != roost.Held {
		return
	}
	if r != nil {
		r.reason, r.by, r.code, r.own, r.machine = "", "", 0, 0, 0
	}
	q.ready(j, i)
}

// ready makes a task wait for a machine, or for what its job waits for.
func (q *Queue) ready(j *job, i int) {
	if j.blocked() {
		q.become(j, i, roost.Blocked)
	} else {
		q.become(j, i, roost.Idle)
	}
	if r := j.records[i]; r != nil && *r == (record{want: roost.Running}) {
		delete(j.records, i)
	}
}

func (q *Queue) remove(j *job, i int, e *Event) {
	s := j.state[i]
	if s.Final() {
		return
	}
	if !s.Active() {
		if r := j.records[i]; r != nil || e.Reason != "" || e.By != "" {
			r = j.record(i)
			r.reason, r.by = e.Reason, e.By
		}
		q.become(j, i, roost.Removed)
		return
	}
	r := j.record(i)
	if r.want == roost.Removed && (r.force || !e.Force) {
		return
	}
	r.want, r.reason, r.by, r.force = roost.Removed, e.Reason, e.By, e.Force
	q.changes++
	q.vacates = append(q.vacates, Vacate{roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}, e.Force, e.Reason})
}

func (q *Queue) retry(j *job, i int) {
	if !j.retryable(i) {
		return
	}
	if j.state[i] == roost.Completed {
		j.failed--
	}
	if r := j.records[i]; r != nil {
		r.own, r.machine, r.reason, r.by, r.code, r.force = 0, 0, "", "", 0, false
	}
	j.ended = 0
	q.ready(j, i)
}

// retryable reports whether a task was removed, or completed without success.
func (j *job) retryable(i int) bool {
	return j.state[i] == roost.Removed || j.state[i] == roost.Completed && !j.records[i].exit.Success()
}

// unblock lets the tasks of a job go on that waits for nothing any more.
func (q *Queue) unblock(j *job) {
	if j.blocked() || j.counts[roost.Blocked] == 0 {
		return
	}
	for i, s := range j.state {
		if s == roost.Blocked {
			q.become(j, i, roost.Idle)
		}
	}
}

// settled follows up when the last task of a job may have become final.
func (q *Queue) settled(j *job, at int64) {
	if j.final() {
		j.ended = at
		q.done[j.seq] = struct{}{}
		q.resolve(j, at)
	}
}

// resolve looks at the jobs that wait for this one, in their order. What falls because of it can make others fall.
func (q *Queue) resolve(parent *job, at int64) {
	for _, seq := range sortedSet(q.dependents[parent.seq]) {
		if j := q.jobs[seq]; j != nil {
			q.met(j, at)
		}
	}
	if parent.final() {
		delete(q.dependents, parent.seq)
	}
}

// met drops the dependencies of a job that are met. One that can never be takes the job out of the queue, as PBS does.
func (q *Queue) met(j *job, at int64) {
	if len(j.waits) == 0 {
		return
	}
	open := j.waits[:0:0]
	for _, w := range j.waits {
		parent := q.jobs[w.Job]
		if parent == nil {
			illegal("job %d waits for job %d, which is not there", j.seq, w.Job)
		}
		met, never := w.Type.judge(fateOf(parent))
		if never {
			j.waits = nil
			e := Event{Reason: fmt.Sprintf("it depends on %v:%v, which can never come", w.Type, parent.id(q.host))}
			for i := range j.state {
				q.remove(j, i, &e)
			}
			q.note(j)
			q.settled(j, at)
			return
		}
		if !met {
			open = append(open, w)
		} else if d := q.dependents[w.Job]; d != nil && !slices.ContainsFunc(open, func(o Wait) bool { return o.Job == w.Job }) {
			delete(d, j.seq)
		}
	}
	if len(open) == len(j.waits) {
		return
	}
	j.waits = open
	for _, w := range open {
		q.dependents[w.Job][j.seq] = struct{}{} // another dependency on the same job may have been met
	}
	q.note(j)
	q.unblock(j)
}

func (q *Queue) purge(j *job) {
	if !j.final() {
		illegal("job %d is purged with %d tasks that are not final", j.seq, q.tasks)
	}
	q.leave(j)
	delete(q.jobs, j.seq)
	delete(q.dependents, j.seq)
	delete(q.unsaved, j.seq)
	q.departed = append(q.departed, j.seq)
	if rest := slices.DeleteFunc(q.keys[j.sub.Key], func(seq uint64) bool { return seq == j.seq }); len(rest) > 0 {
		q.keys[j.sub.Key] = rest
	} else {
		delete(q.keys, j.sub.Key)
	}
	if q.template.seq == j.seq {
		q.template = template{}
	}
}
