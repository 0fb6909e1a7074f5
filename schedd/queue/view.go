package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Status is what is told of a job, or of one task of it.
type Status struct {
	Job       roost.JobID
	Name      string
	Owner     string
	UID       uint32
	Band      roost.Band
	Priority  int
	Queue     string
	Group     string
	Reserved  string // the only reservation in which it may run; empty: none
	Array     bool
	Rank      uint64 // its place among the jobs of the schedd: the number of the job whose place it is
	Since     int64  // when the job of that place was submitted, unix nanoseconds
	Submitted int64  // unix nanoseconds; the next two 0 for not yet
	Started   int64
	Ended     int64
	Eligible  int64 // since when it could run, and was not held or made to wait since, unix nanoseconds; 0: it is
	Waiting   int64 // since when a task of it waits for nothing but a machine, likewise; 0: none does
	Waited    int64 // for how long some did before, nanoseconds
	Tasks     int
	Counts    [roost.Removed + 1]int
	Failed    int
	Resources roost.Resources
	Request   RequestID
	Reason    string
	Locked    bool        // it is held, and only who administers may release it
	Timed     bool        // blocked tasks wait for the start time, and for no other job
	Task      *TaskStatus // of the task, or of the only one, or of the one that leads the others
	RunNow    RunNowStatus
	Parts     []Part // of machines that the job has, where one task leads the others, in the order of the tasks
}

// Part is what a task holds, or is to hold, of a node.
type Part struct {
	Node      string // empty: not known yet
	Place     string // see Event.Place
	Resources roost.Resources
}

// TaskStatus is what is told of one task.
type TaskStatus struct {
	Index   int
	Known   int // the index that users know it by
	State   roost.TaskState
	Attempt roost.Attempt
	Node    string
	Place   string // see Event.Place
	Started int64
	Ended   int64
	Exit    *Exit
	Reason  string
	By      string // Suspended: "owner" of its machine, "user", or both with a comma between them

	Images int   // good checkpoints that are kept
	Saved  int64 // when the last of them was taken, unix nanoseconds
	Base   Work  // of earlier attempts, that the last one went on from
}

// Status tells how a job stands.
func (q *Queue) Status(seq uint64) (Status, bool) {
	j := q.jobs[seq]
	if j == nil {
		return Status{}, false
	}
	return q.status(j), true
}

func (q *Queue) status(j *job) Status {
	s := Status{
		Job: j.id(q.host), Name: j.plan.name, Owner: j.sub.Owner, UID: j.sub.UID, Band: j.plan.band, Priority: j.plan.priority,
		Queue: j.plan.queue, Group: j.plan.group, Array: j.plan.array, Timed: j.timed(), Locked: j.anyLocked(), Submitted: j.submitted, Rank: j.rank, Since: j.since, Reserved: j.plan.reservation,
		Resources: j.classes[0].request.Resources, Request: j.waiting().ID,
		Eligible: j.eligible.entered, Waiting: j.eligible.since, Waited: j.eligible.total,
	}
	s.Tasks, s.Counts, s.Failed = j.tally()
	s.RunNow = j.runNowStatus()
	if j.plan.led && j.plan.gang == len(j.state) {
		q.ledStatus(j, &s)
		return s
	}
	if len(j.state) == 1 {
		t := q.task(j, 0)
		s.Task, s.Started, s.Ended, s.Reason = &t, t.Started, t.Ended, t.Reason
		return s
	}
	s.Started, s.Ended, s.Reason = j.span()
	return s
}

// waiting is the request that what waits of a job is asked for by: with a checkpoint it is another one than at first.
func (j *job) waiting() *Request {
	for _, c := range j.classes {
		if c.count > 0 {
			return c.request
		}
	}
	return j.classes[0].request
}

// span is when the first task of a job started and the last one ended, and the first reason there is to tell.
func (j *job) span() (started, ended int64, reason string) {
	if j.final() {
		ended = j.ended
	}
	switch {
	case j.counts[roost.Held]+j.counts[roost.Removed] > 0:
		i := slices.IndexFunc(j.state, func(s roost.TaskState) bool { return s == roost.Held || s == roost.Removed })
		reason = j.reason(i)
	case j.failed > 0:
		tasks, _, failed := j.tally()
		reason = fmt.Sprintf("%d of %d tasks failed", failed, tasks)
	case j.counts[roost.Blocked] > 0:
		reason = j.waitsFor()
	}
	return j.began, ended, reason
}

// reason explains the state of one task.
func (j *job) reason(i int) (why string) {
	r := j.book.at(i)
	if r != nil {
		why = r.why(j.state[i])
	}
	switch {
	case j.state[i] == roost.Blocked:
		return j.waitsFor()
	case j.state[i] == roost.Held && why == "":
		return "held when it was submitted"
	}
	return why
}

// Remaining lists the indexes of the tasks of a job that wait to be started, as users know them: "3-9,12"; empty when there are none. Of a list of more
// than maxSpelled parts the rest is left out.
func (q *Queue) Remaining(seq uint64) string {
	j := q.jobs[seq]
	if j == nil {
		return ""
	}
	waits := func(i int) bool {
		s := j.state[i]
		return s == roost.Idle || s == roost.Held || s == roost.Blocked
	}
	var parts []string
	step := j.stride()
	for first := 0; first < len(j.state) && len(parts) < maxSpelled; first += step {
		if !waits(first) {
			continue
		}
		last := first
		for last+step < len(j.state) && waits(last+step) {
			last += step
		}
		parts = append(parts, j.spell(first, last))
		first = last
	}
	return strings.Join(parts, ",")
}

// TaskStatus tells how one task stands, within its job's status.
func (q *Queue) TaskStatus(t roost.TaskID) (Status, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return Status{}, false
	}
	return q.taskStatus(j, q.status(j), t.Index), true
}

// taskStatus makes of the status of a job that of one of its tasks.
func (q *Queue) taskStatus(j *job, s Status, i int) Status {
	if j.stride() > 1 {
		return q.ledTaskStatus(j, s, j.head(i))
	}
	one, c := q.task(j, i), j.class(i)
	s.Task, s.Started, s.Ended, s.Reason = &one, one.Started, one.Ended, one.Reason
	s.Locked = one.State == roost.Held && j.locked(i)
	s.Resources, s.Request, s.Parts = c.request.Resources, c.request.ID, nil
	return s
}

// Tasks calls f with the status of each task in a target, until f returns false.
func (q *Queue) EachTask(t Target, f func(Status) bool) { q.EachTaskIn(t, nil, false, f) }

// EachTaskIn is EachTask for the tasks that are in one of some states, or with failed have completed without success. Both empty means all.
func (q *Queue) EachTaskIn(t Target, states []roost.TaskState, failed bool, f func(Status) bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return
	}
	more, whole := true, q.status(j) // once: it may look at every task
	t.each(len(j.state), func(i int) {
		if j.stride() > 1 && j.follows(i) {
			return
		}
		all, s := len(states) == 0 && !failed, j.standing(i)
		if more && (all || slices.Contains(states, s.state) || failed && s.failed) {
			more = f(q.taskStatus(j, whole, i))
		}
	})
}

func (q *Queue) task(j *job, i int) TaskStatus {
	t := TaskStatus{Index: i, Known: q.Index(j.id(q.host).Task(i)), State: j.state[i]}
	if r := j.book.at(i); r != nil {
		t.Place = r.place
		t.Attempt, t.Node, t.Started, t.Exit = r.attempt, r.node, r.started, r.exit
		if t.State.Final() {
			t.Ended = r.ended
		}
		if m := r.newest(); m != nil {
			t.Images, t.Saved = len(r.saves.images), m.Time
		}
		if r.saves != nil {
			t.Base = r.saves.base
		}
	}
	t.Reason, t.By = j.reason(i), j.suspendedBy(i)
	return t
}

// why is the one line that explains a state.
func (r *record) why(s roost.TaskState) string {
	switch {
	case s == roost.Held:
		return r.hold
	case s == roost.Removed:
		return r.reason
	case s.Active() && r.removed:
		return "being removed: " + r.reason
	case s.Active() && r.held:
		return "being held: " + r.hold
	case s == roost.Suspended && r.owner != "" && r.both:
		return r.owner + "; and suspended by a user"
	case s == roost.Suspended && r.owner != "":
		return r.owner
	case s == roost.Suspended:
		return "suspended by a user"
	case s == roost.Completed && r.exit != nil && !r.exit.Success():
		if r.newest() != nil {
			return r.exit.Text() + "; its last checkpoint is kept for a retry"
		}
		return r.exit.Text()
	}
	return ""
}

// Text says in words how an attempt ended.
func (x *Exit) Text() string {
	switch {
	case x.Reason != "":
		return x.Reason
	case x.Signal != 0:
		return fmt.Sprintf("ended by signal %d", x.Signal)
	default:
		return fmt.Sprintf("exit code %d", x.Code)
	}
}

// Spec is a job as it would be submitted now.
func (q *Queue) Spec(seq uint64) (Spec, bool) {
	j := q.jobs[seq]
	if j == nil {
		return Spec{}, false
	}
	return Spec{Ad: q.parsed(j), Count: len(j.state), Columns: j.sub.Columns}, true
}

// ReadyJobs lists the jobs that have tasks in a request that could start, in no order.
func (q *Queue) ReadyJobs(id RequestID) (seqs []uint64) {
	if r := q.requests[id]; r != nil {
		for _, c := range r.classes {
			seqs = append(seqs, c.job.seq)
		}
	}
	return seqs
}

// Group is the gid that a job was submitted with.
func (q *Queue) Group(seq uint64) uint32 {
	if j := q.jobs[seq]; j != nil {
		return j.sub.GID
	}
	return 0
}

// Ad returns a job's ad as text.
func (q *Queue) Ad(seq uint64) (string, bool) {
	j := q.jobs[seq]
	if j == nil {
		return "", false
	}
	return j.sub.Ad, true
}

// Satisfies reports whether an expression is true of a job's ad, looked at without the attributes that are hidden.
func (q *Queue) Satisfies(seq uint64, e classad.Expr, env *classad.Env, hidden ...string) bool {
	j := q.jobs[seq]
	if j == nil {
		return false
	}
	ad := j.ad
	if ad == nil {
		var err error
		if ad, err = classad.Parse(j.sub.Ad); err != nil {
			return false
		}
	}
	if len(hidden) > 0 {
		ad = ad.Copy()
		for _, name := range hidden {
			ad.Delete(name)
		}
	}
	ok, isBool := classad.Eval(e, ad, nil, env).Truth()
	return ok && isBool
}

// FailedTasks calls f with tasks of a job that have failed, at most limit of them.
func (q *Queue) FailedTasks(seq uint64, limit int, f func(Status)) {
	j := q.jobs[seq]
	if j == nil || j.failed == 0 {
		return
	}
	for i := 0; i < len(j.state); i += j.stride() {
		if j.standing(i).failed {
			st, _ := q.TaskStatus(j.id(q.host).Task(i))
			f(st)
			if limit--; limit == 0 {
				return
			}
		}
	}
}

// Rerunnable reports whether the tasks of a job may be run again after an attempt was interrupted.
func (q *Queue) Rerunnable(seq uint64) bool {
	j := q.jobs[seq]
	return j != nil && j.plan.rerunnable
}

// Key returns the submit key of a job, with its owner's uid before it.
func (q *Queue) Key(seq uint64) (string, bool) {
	j := q.jobs[seq]
	if j == nil {
		return "", false
	}
	return j.sub.Key, true
}

// Changes counts what has happened to each of the jobs, so that one can see later whether something has.
func (q *Queue) Changes(seqs []uint64) map[uint64]int {
	out := make(map[uint64]int, len(seqs))
	for _, seq := range seqs {
		if j := q.jobs[seq]; j != nil {
			out[seq] = j.changes
		}
	}
	return out
}
