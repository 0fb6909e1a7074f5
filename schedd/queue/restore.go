package queue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// saved is a snapshot taken apart.
type saved struct {
	admitted     Event
	states       []roost.TaskState
	book         book
	free         bool // not blocked
	met          []int
	began, ended int64
	rank         uint64 // 0: the job's number
	since        int64
	pasts        []savedPast
	eligible     eligible
	distrust     distrust
	orders       []savedOrder
	denied       string
	relations
}

// savedPast is what some tasks began with.
type savedPast struct {
	ad    string
	tasks []Range
}

func (p *savedPast) decode(b []byte, tasks int) error {
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			p.ad = string(f.bytes)
		case 2:
			r, err := decodeRange(f.bytes)
			if err == nil && (r.First < 0 || r.Last < r.First || r.Last >= tasks) {
				err = fmt.Errorf("tasks %d to %d of %d", r.First, r.Last, tasks)
			}
			p.tasks = append(p.tasks, r)
			return err
		}
		return nil
	})
}

// Restore puts a job back that Snapshot wrote down. After an error the queue is of no use.
func (q *Queue) Restore(snapshot []byte) (err error) {
	defer func() { // what contradicts itself within the job's own ad and columns
		if r := recover(); r != nil {
			err = fmt.Errorf("snapshot of a job: %w: %v", roost.Invalid, r)
		}
	}()
	s := saved{}
	err = fields(snapshot, s.field)
	if err == nil && (s.admitted.Submission == nil || len(s.states) != s.tasks()) {
		err = fmt.Errorf("%d states", len(s.states))
	}
	if err == nil && q.jobs[s.admitted.Job] != nil {
		err = fmt.Errorf("job %d is there twice", s.admitted.Job)
	}
	if err != nil {
		return fmt.Errorf("snapshot of a job: %w: %w", roost.Invalid, err)
	}
	q.restore(&s)
	return nil
}

// field takes in one field.
func (s *saved) field(f field) (err error) {
	switch f.number {
	case sAdmitted:
		s.admitted, err = DecodeEvent(f.bytes)
		if err == nil && (s.admitted.What != Submitted || s.tasks() < 1 || s.tasks() > roost.MaxTasks) {
			err = errors.New("it does not begin with a submission")
		}
	case sStates:
		err = s.run(f.bytes)
	case sRecord:
		err = s.record(f.bytes)
	case sFree:
		s.free = f.value != 0
	case sMet:
		s.met = append(s.met, int(f.value)-1)
	case sNode:
		s.book.node(string(f.bytes), "")
	case sFinished:
		err = s.book.decodeFinished(f.bytes, s.tasks())
	case sBegan:
		s.began = int64(f.value)
	case sEnded:
		s.ended = int64(f.value)
	case sRank:
		s.rank = f.value
	case sSince:
		s.since = int64(f.value)
	case sPast:
		p := savedPast{}
		err = p.decode(f.bytes, s.tasks())
		s.pasts = append(s.pasts, p)
	case sEntered:
		s.eligible.entered = int64(f.value)
	case sWaiting:
		s.eligible.since = int64(f.value)
	case sWaited:
		s.eligible.total = int64(f.value)
	case sAbove:
		s.distrust.above = roost.Attempt(f.value)
	case sUnsure:
		s.distrust.unsure = f.value != 0
	case sUrgent:
		o := savedOrder{}
		err = o.decode(f.bytes, s.tasks())
		s.orders = append(s.orders, o)
	case sDenied:
		s.denied = string(f.bytes)
	default:
		err = s.relations.field(f)
	}
	return err
}

// tasks is how many the job has, 0 while it is not known.
func (s *saved) tasks() int {
	if s.admitted.Submission == nil {
		return 0
	}
	return s.admitted.Submission.Count
}

// run takes in a run of equal states.
func (s *saved) run(b []byte) error {
	var n, state uint64
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			n = f.value
		case 2:
			state = f.value
		}
		return nil
	})
	if err == nil && (state > uint64(roost.Removed) || n > uint64(s.tasks()-len(s.states))) {
		err = fmt.Errorf("%d tasks in state %d", n, state)
	}
	if err == nil {
		s.states = append(s.states, slices.Repeat([]roost.TaskState{roost.TaskState(state)}, int(n))...)
	}
	return err
}

// record takes in what is known of one task, or the note of several.
func (s *saved) record(b []byte) error {
	r := &record{}
	var first, last uint64
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			first = f.value
		case 19:
			last = f.value
		}
		return r.decode(f)
	})
	last = max(first, last)
	if err == nil && last >= uint64(s.tasks()) {
		err = fmt.Errorf("a record of task %d of %d", last, s.tasks())
	}
	if err != nil {
		return err
	}
	to := kindNote
	if r.attempt > 0 {
		to = kindOwn | ref(s.book.own.put(r))
		last = first
	} else {
		to |= ref(s.book.notes.put(&note{record: *r}))
	}
	for i := first; i <= last; i++ {
		s.book.set(int(i), s.tasks(), to)
	}
	return nil
}

func (r *record) decode(f field) error {
	switch f.number {
	case 2:
		r.attempt = roost.Attempt(f.value)
	case 3:
		r.node = string(f.bytes)
	case 4:
		r.address = string(f.bytes)
	case 5:
		r.claim = f.value
	case 6:
		r.assigned = int64(f.value)
	case 7:
		r.started = int64(f.value)
	case 8:
		r.ended = int64(f.value)
	case 9:
		r.own = int(f.value)
	case 10:
		r.machine = int(f.value)
	default:
		return r.decodeWishes(f)
	}
	return nil
}

// decodeWishes reads what was wanted of the task, and how its attempt ended.
func (r *record) decodeWishes(f field) error {
	switch f.number {
	case 11:
		r.live = f.value != 0
	case 12:
		r.hold = string(f.bytes)
	case 13:
		r.held = f.value != 0
	case 14:
		r.by = string(f.bytes)
	case 15:
		r.removed = f.value != 0
	case 16:
		r.reason = string(f.bytes)
	case 17:
		r.force = f.value != 0
	case 18:
		r.exit = &Exit{}
		return r.exit.decode(f.bytes)
	case 21:
		r.place = string(f.bytes)
	case 22:
		r.owner = string(f.bytes)
	case 23:
		r.both = f.value != 0
	case 24:
		r.requeued = f.value != 0
	case 25:
		r.spoiled = int64(f.value)
	case 20:
		r.saves = &saves{}
		return r.saves.decode(f.bytes)
	}
	return nil
}

// restore admits the job anew and brings its tasks to where they stood.
func (q *Queue) restore(s *saved) {
	q.at = s.admitted.Time
	q.admit(s.admitted)
	j := q.jobs[s.admitted.Job]
	if s.free {
		q.unblocked(j)
	}
	if len(s.met) > 0 {
		j.waits = nil
		for i, w := range j.sub.Waits {
			if !s.free && w.Type.holds() && !slices.Contains(s.met, i) {
				j.waits = append(j.waits, w)
			}
		}
	}
	j.relate(q, &s.relations, s.free)
	j.book, j.began, j.ended, j.runDenied = s.book, s.began, s.ended, s.denied
	j.restoreOrders(s.orders)
	if s.rank != 0 {
		q.place(j, s.rank, s.since)
	}
	for _, p := range s.pasts {
		before := &past{ad: p.ad}
		for _, r := range p.tasks {
			for i := r.First; i <= r.Last; i++ {
				if r := j.book.written(i); r == nil || !r.live {
					panic(fmt.Sprintf("task %d has a past, and does not run", i))
				}
				q.pin(j, i, before)
			}
		}
	}
	q.together(j, func() { q.putAll(j, s.states) })
	j.recall(s.eligible)
	j.distrust = s.distrust
	if j.final() {
		q.done[j.seq] = true
	}
	delete(q.unsaved, j.seq)
}

// putAll brings the tasks of a restored job to their states.
func (q *Queue) putAll(j *job, states []roost.TaskState) {
	for i, to := range states {
		r := j.book.written(i)
		if live := r != nil && r.live; live != to.Active() {
			panic(fmt.Sprintf("task %d is %v, and its attempt is live: %v", i, to, live))
		}
		q.put(j, i, to)
		q.reclass(j, i)
		if to.Active() {
			j.active++
			if r.removed {
				q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Fast: r.force, Reason: r.reason})
			} else if r.requeued {
				q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Fast: true, Reason: requeuedReason})
			} else if r.held {
				q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Keep: j.plan.saving != nil && j.plan.saving.OnVacate, Reason: r.hold})
			}
		}
		if to == roost.Completed && !j.book.succeeded(i) {
			j.failed++
		}
	}
}
