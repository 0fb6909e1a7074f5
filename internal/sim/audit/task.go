package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// task is what is known of one.
type task struct {
	assigned  roost.Attempt // the last that was recorded
	fence     roost.Attempt // of those up to here it was known when a user was told that it starts no more
	held      bool
	gone      bool // it is to be removed
	removed   bool
	completed roost.Attempt // by which; 0: it is not
	living    []life
	ended     map[roost.Attempt]int32 // exit codes
	stored    map[roost.Attempt]bool
	freed     time.Duration // when its last attempt ended
}

// life is an attempt of which a process lives.
type life struct {
	attempt roost.Attempt
	node    string
	beside  roost.Attempt // that began while its machine slept
}

// open reports whether a task has not come to its end.
func (t *task) open() bool { return t.completed == 0 && !t.removed }

// seeTask holds tasks against P3, P4, P8 and P11.
func (a *Auditor) seeTask(s *Seen) {
	j := a.jobs[s.Job]
	if j == nil { // nobody was shown it, and no disk has it: it may be forgotten
		j = &job{id: s.Job}
		a.jobs[s.Job] = j
	}
	if s.Index == All {
		for i := range j.tasks {
			one := *s
			one.Index = i
			a.seeOne(j, &one)
		}
		return
	}
	for len(j.tasks) <= s.Index {
		j.tasks = append(j.tasks, task{})
	}
	a.seeOne(j, s)
}

func (a *Auditor) seeOne(j *job, s *Seen) {
	t := &j.tasks[s.Index]
	switch s.What {
	case Assigned:
		a.assigned(t, s)
	case Began:
		a.began(t, s)
	case Ended:
		a.ended(t, s)
	case Stored, Unstored:
		if t.stored == nil {
			t.stored = map[roost.Attempt]bool{}
		}
		t.stored[s.Attempt] = s.What == Stored
		if s.What == Stored && s.Note != "" {
			a.breach(11, ofTask(s.task()), "with the output of attempt %d of %v %s is stored, which nobody has asked for", s.Attempt, s.task(), s.Note)
		}
	case Completed:
		a.completed(t, s)
	case Removed:
		t.removed = true
	case Reopened:
		t.removed, t.gone, t.held, t.completed = false, false, false, 0
	case Doubted: // it may end once more, and need not go where somebody wanted that
		t.removed, t.gone, t.completed = false, false, 0
	case HeldBack:
		t.held, t.fence, t.gone = true, t.assigned, t.gone || s.Note == Removal
	case LetGo:
		t.held = false
	}
}

// assigned is for an attempt that is recorded. A hold is acknowledged when it is on the disk of the schedd, which may be before a machine hears of it: what
// was on its way there by then may begin, and is told to end. A new attempt is one that is recorded later.
func (a *Auditor) assigned(t *task, s *Seen) {
	switch {
	case s.Attempt <= t.assigned:
		a.breach(4, ofTask(s.task()), "attempt %d of %v is recorded after attempt %d, and numbers only rise", s.Attempt, s.task(), t.assigned)
	case !t.open():
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded, which was over", s.Attempt, s.task())
	case t.held:
		a.breach(8, ofTask(s.task()), "attempt %d of %v is recorded after a user was told that none starts", s.Attempt, s.task())
	}
	t.assigned = max(t.assigned, s.Attempt)
}

func (a *Auditor) began(t *task, s *Seen) {
	switch {
	case t.completed != 0:
		a.breach(3, ofTask(s.task()), "attempt %d of %v begins after attempt %d was recorded as its last", s.Attempt, s.task(), t.completed)
	case t.held && s.Attempt > t.fence:
		a.breach(8, ofTask(s.task()), "attempt %d of %v begins after a user was told that none starts", s.Attempt, s.task())
	}
	for i := range t.living {
		other := &t.living[i]
		if a.machine(other.node).asleep {
			other.beside = s.Attempt
			continue
		}
		a.breach(4, ofTask(s.task()), "attempt %d of %v begins on %s, and attempt %d lives on %s", s.Attempt, s.task(), s.Node, other.attempt, other.node)
	}
	t.living = append(t.living, life{attempt: s.Attempt, node: s.Node})
	a.machine(s.Node).begin(a, s)
}

func (a *Auditor) ended(t *task, s *Seen) {
	if t.ended == nil {
		t.ended = map[roost.Attempt]int32{}
	}
	t.ended[s.Attempt], t.freed = s.Code, s.At
	m := a.machine(s.Node)
	m.end(s)
	t.living = slices.DeleteFunc(t.living, func(l life) bool {
		if l.attempt != s.Attempt || l.node != s.Node {
			return false
		}
		if l.beside != 0 && !m.asleep && s.At > m.woke+a.rules.Waking {
			a.breach(4, ofTask(s.task()), "attempt %d of %v lived on %s until %s after it woke, and attempt %d had begun", l.attempt, s.task(), s.Node, Clock(s.At-m.woke), l.beside)
		}
		return true
	})
}

func (a *Auditor) completed(t *task, s *Seen) {
	code, ended := t.ended[s.Attempt]
	switch {
	case t.completed != 0:
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded as its last, and attempt %d was before", s.Attempt, s.task(), t.completed)
	case s.Attempt != t.assigned:
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded as its last, and attempt %d is", s.Attempt, s.task(), t.assigned)
	case a.awake(t) != nil:
		other := a.awake(t)
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded as its last while attempt %d lives on %s", s.Attempt, s.task(), other.attempt, other.node)
	case !ended:
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded as its last, and never ran", s.Attempt, s.task())
	case code != s.Code:
		a.breach(3, ofTask(s.task()), "attempt %d of %v is recorded with code %d, and ended with %d", s.Attempt, s.task(), s.Code, code)
	}
	if !t.stored[s.Attempt] {
		a.breach(11, ofTask(s.task()), "attempt %d of %v is recorded as its last, and its output is not at the submit side", s.Attempt, s.task())
	}
	t.completed = s.Attempt
}

// awake is an attempt of a task that lives, on a machine that does not sleep; what slept when another began was told of then. nil: there is none.
func (a *Auditor) awake(t *task) *life {
	for i := range t.living {
		if l := &t.living[i]; l.beside == 0 && !a.machine(l.node).asleep {
			return l
		}
	}
	return nil
}
