package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// This is how checkpoints move the state: which images of a task are good, what its next attempt goes on from, and how much of its work that is.
//
// An image is recorded when it is on disk, and only while the attempt lives that it was taken of. An attempt goes on from the newest good image
// there is when it is assigned. When it ends because that image could not be restored, the image is bad: the task goes on from the one before,
// and then from nothing. That is nobody's failure, and each time there is one image less.

// begins notes what a new attempt goes on from.
func (r *record) begins(from *Image) {
	if from == nil && r.saves == nil {
		return
	}
	s := r.saved()
	s.from, s.base, s.frozen, s.failure, s.failed = 0, Work{}, false, "", 0
	if from != nil {
		s.from, s.base = from.Sequence, from.Work
	} else {
		s.spent = 0
	}
}

// checkpointed takes in what became of a checkpoint.
func (q *Queue) checkpointed(j *job, e Event) {
	if e.What == CheckpointBad {
		q.spoil(j, e.Index, e.Image.Sequence)
		return
	}
	r := j.book.written(e.Index)
	if r == nil || !r.live || r.attempt != e.Attempt {
		panic(fmt.Sprintf("queue: %v of attempt %d of %v, which is not live", e.What, e.Attempt, j.id(q.host).Task(e.Index)))
	}
	s := r.saved()
	if e.What == CheckpointFailed {
		s.failure = e.Reason
		s.failed++
		return
	}
	s.failure, s.last = "", max(s.last, e.Image.Sequence)
	r.machine = 0 // it gets on, however often its machines fail
	s.images = append(s.images, *e.Image)
	for len(s.images) > keptImages {
		q.drop(j, e.Index, s.images[0])
		s.images = append([]Image(nil), s.images[1:]...)
	}
}

// spoil takes an image out that cannot be used.
func (q *Queue) spoil(j *job, i int, sequence uint64) {
	r := j.book.written(i)
	if r == nil || r.saves == nil {
		return
	}
	for k, m := range r.saves.images {
		if m.Sequence == sequence {
			q.drop(j, i, m)
			r.saves.images = append(append([]Image(nil), r.saves.images[:k]...), r.saves.images[k+1:]...)
			return
		}
	}
}

// restarts reports whether a program ended in the way that says: saved, start me again.
func (s *saving) restarts(x *Exit) bool {
	return s != nil && s.Self && s.ExitCode != 0 && x.Cause == ByItself && x.Signal == 0 && x.Code == s.ExitCode
}

// A task that asks again and again to be started anew, each time within quickRun, is held after maxQuick times: it does not get on.
const (
	quickRun = 5 * time.Second
	maxQuick = 50
)

// restarted is for an attempt that wants to be started again.
func (r *record) restarted(x *Exit) *record {
	s := r.saved()
	if s.quick++; time.Duration(x.Wall) >= quickRun {
		s.quick = 0
	}
	if s.quick >= maxQuick && !r.held {
		s.quick = 0
		r.held, r.hold = true, fmt.Sprintf("it ended with exit code %d, to be started again, %d times in a row within %v of its start", x.Code, maxQuick, quickRun)
	}
	return r
}

// anew lets the walltime begin anew with what is kept.
func (r *record) anew() *record {
	if m := r.newest(); m != nil {
		r.saves.spent = m.Wall
	}
	return r
}

// freeze has a user suspend a running task, or let it go on as far as he is concerned, and asks for what that means.
func (q *Queue) freeze(j *job, i int, on bool) {
	s := j.state[i]
	if s != roost.Running && s != roost.Suspended || j.byUser(i) == on {
		return
	}
	r := j.of(i)
	r.saved().frozen = true
	switch {
	case r.owner != "":
		r.both = on
	case on:
		q.transition(j, i, roost.Suspended)
	default:
		q.transition(j, i, roost.Running)
	}
	if on || !j.stilled(i) {
		q.frozen = append(q.frozen, Freeze{q.attemptOf(j, i), on})
	}
}

// Freeze asks that a running attempt be frozen, or thawed.
type Freeze struct {
	Attempt roost.AttemptID
	Frozen  bool
}

// TakeFreezes drains the attempts that are to be frozen or thawed.
func (q *Queue) TakeFreezes() []Freeze {
	out := q.frozen
	q.frozen = nil
	return out
}

// Frozen tells how a live attempt is to be, once somebody has suspended it; false when nobody ever has.
func (q *Queue) Frozen(a roost.AttemptID) (Freeze, bool) {
	if !q.Live(a) {
		return Freeze{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.book.written(a.Task.Index)
	if r.saves == nil || !r.saves.frozen {
		return Freeze{}, false
	}
	return Freeze{a, j.byUser(a.Task.Index) || j.stilled(a.Task.Index)}, true
}

// origin is what the present attempt of a task goes on from, nil for nothing.
func (q *Queue) origin(a roost.AttemptID) *Image {
	j := q.jobs[a.Task.Job.Seq]
	r := j.book.written(a.Task.Index)
	if r == nil || r.saves == nil || r.attempt != a.Attempt || r.saves.from == 0 {
		return nil
	}
	m := r.saves.image(r.saves.from)
	if m == nil {
		return nil
	}
	image := *m
	return &image
}

// leastWalltime is what an attempt gets that went on from an image with nearly all of its walltime in it.
const leastWalltime = time.Second

// continued completes a program with what checkpoints ask for. The walltime limits the work of a task, that in its image included: the attempt gets
// what is left.
func (q *Queue) continued(j *job, a roost.AttemptID, p *Program) {
	var s *saves
	if r := j.book.written(a.Task.Index); r != nil {
		s = r.saves
	}
	p.Checkpoint = j.plan.saving.policy(p.Walltime, imageKey(j.sub.Secret, a.Task.Index, a.Attempt), s)
	if s == nil {
		return
	}
	if p.Restore = q.origin(a); p.Restore != nil {
		p.RestoreKey = imageKey(j.sub.Secret, a.Task.Index, p.Restore.Attempt)
	}
	if s.from == 0 {
		return
	}
	done := time.Duration(s.base.Wall - s.spent)
	if p.Walltime > 0 {
		p.Walltime = max(p.Walltime-done, leastWalltime)
	}
	if p.Bounds.CPU > 0 {
		p.Bounds.CPU = max(p.Bounds.CPU-time.Duration(s.base.User+s.base.System), leastWalltime)
	}
	if p.Expected > 0 {
		p.Expected = max(p.Expected-done, leastWalltime)
	}
}

// reclass puts a task among those that want a machine which can restore images, or back. A task that is being run stays where it was when it was
// assigned.
func (q *Queue) reclass(j *job, i int) {
	r := j.book.written(i)
	restores := false
	switch {
	case r == nil || j.plan.saving == nil || j.plan.saving.Self: // files go anywhere
	case r.live:
		restores = r.saves != nil && r.saves.from != 0
	default:
		restores = r.newest() != nil
	}
	slot := false
	if restores {
		m := r.newest()
		if r.live && r.saves.image(r.saves.from) != nil {
			m = r.saves.image(r.saves.from)
		}
		slot = m != nil && m.Slot
	}
	c := j.class(i)
	if c.past != nil {
		if r != nil && r.live {
			return
		}
		q.assignClass(j, i, j.proper(i)) // it runs no more, and is what its job is now
		c = j.class(i)
	}
	if now := j.whereNow(i); c.plan.restores != restores || c.plan.slot != slot || c.plan.now != now {
		q.assignClass(j, i, q.twin(j, c, restores, slot, now))
	}
}

// twin finds or makes the class that is as another, but for what it wants to restore, and whether and where it is to run now.
func (q *Queue) twin(j *job, c *class, restores, slot bool, now string) uint16 {
	first := c
	if c.twin != nil {
		first = c.twin
	}
	for n, other := range j.classes {
		if (other == first || other.twin == first) && other.plan.restores == restores && other.plan.slot == slot && other.plan.now == now {
			return uint16(n)
		}
	}
	p := *c.plan
	p.restores, p.slot, p.now = restores, slot, now
	q.addClass(j, &p)
	j.classes[len(j.classes)-1].twin = first
	return uint16(len(j.classes) - 1)
}
