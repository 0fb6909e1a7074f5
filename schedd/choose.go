package schedd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// target is one thing that a selection names, or why it names nothing.
type target struct {
	queue.Target
	text string
	err  error
	some bool // one of several that a word stands for
}

// choose finds what a selection names among the jobs of the queue. Words that stand for several jobs ("all", "last", "@name", a range) mean the
// caller's own; ids mean whatever they name.
func (s *Schedd) choose(sel *wire.Selection, who queue.Submitter, act bool) ([]target, error) {
	filter, err := newFilter(sel, who)
	if err != nil {
		return nil, err
	}
	if len(sel.GetSelectors()) == 0 {
		if act {
			return nil, fmt.Errorf("%w: it is not said which jobs are meant: name ids, or all", roost.Invalid)
		}
		return filter.keep(s, wholes(s.queue.Match(filter.Filter))), nil
	}
	var out []target
	for _, word := range sel.GetSelectors() {
		found := s.selected(word, filter, who, act)
		if len(found) > maxChosen || len(out)+len(found) > maxChosen {
			return nil, fmt.Errorf("%w: more than %d jobs are named", roost.Exhausted, maxChosen)
		}
		out = append(out, found...)
	}
	return filter.keep(s, out), nil
}

// maxChosen bounds how many jobs one call may name.
const maxChosen = 10_000_000

// filter is a selection's conditions.
type filter struct {
	queue.Filter
	who         queue.Submitter
	first, last uint64 // job numbers, both included; last 0 for any
	constraint  classad.Expr
	on          bool
}

func newFilter(sel *wire.Selection, who queue.Submitter) (f filter, err error) {
	f.who = who
	if sel.GetMine() {
		f.Owner = who.User
	}
	for _, name := range sel.GetStates() {
		if name == "failed" {
			f.Failed = true
			continue
		}
		state, err := roost.ParseTaskState(name)
		if err != nil {
			return f, fmt.Errorf("%w: %w; use one of %s, or failed", roost.Invalid, err, strings.Join(roost.TaskStateNames(), ", "))
		}
		f.States = append(f.States, state)
	}
	if sel.GetConstraint() != "" {
		if f.constraint, err = classad.ParseExpr(sel.GetConstraint()); err != nil {
			return f, fmt.Errorf("constraint: %w: %w", roost.Invalid, err)
		}
		f.on = true
	}
	return f, nil
}

// keep drops the targets that the conditions leave out. What was named by its id is left out too, when it does not meet them.
func (f filter) keep(s *Schedd, in []target) []target {
	if !f.on && len(f.States) == 0 && !f.Failed && f.Owner == "" {
		return in
	}
	env := constraintEnv()
	return slices.DeleteFunc(in, func(t target) bool {
		if t.err != nil {
			return false
		}
		status, ok := s.queue.Status(t.Job.Seq)
		return ok && !f.admits(s.queue, status, env)
	})
}

// constraintSteps bounds what a user's constraint may take for one job, in nodes, so that nobody's question stops a queue of many.
const constraintSteps = 10_000

func constraintEnv() *classad.Env { return &classad.Env{Now: time.Now(), Steps: constraintSteps} }

// admits reports whether a job of a queue meets the conditions.
func (f filter) admits(q *queue.Queue, st queue.Status, env *classad.Env) bool {
	if f.Owner != "" && st.Owner != f.Owner || f.Name != "" && st.Name != f.Name {
		return false
	}
	if len(f.States) > 0 || f.Failed {
		any := f.Failed && st.Failed > 0
		for _, state := range f.States {
			any = any || st.Counts[state] > 0
		}
		if !any {
			return false
		}
	}
	if f.last > 0 && (st.Job.Seq < f.first || st.Job.Seq > f.last) {
		return false
	}
	if f.on && !mayRead(f.who, &st) { // what is not shown must not be found out by asking either
		return q.Satisfies(st.Job.Seq, f.constraint, env, private...)
	}
	return !f.on || q.Satisfies(st.Job.Seq, f.constraint, env)
}

// past is what a word that stands for several jobs means in the history; false for one that names a job by itself.
func (f filter) past(word string) (filter, bool) {
	if word == "all" {
		return f, true
	}
	f.Owner = f.who.User
	if name, ok := strings.CutPrefix(word, "@"); ok {
		f.Name = name
		return f, true
	}
	var ok bool
	f.first, f.last, ok = jobRange(word)
	return f, ok
}

func wholes(ids []roost.JobID) []target {
	out := make([]target, len(ids))
	for i, id := range ids {
		out[i] = target{Target: queue.Target{Job: id}, text: id.String(), some: true}
	}
	return out
}

// newest finds the newest job of a user, also if it has ended.
func (s *Schedd) newest(user string) (roost.JobID, error) {
	if id, ok := s.queue.Last(user); ok {
		return id, nil
	}
	if id, ok := s.lastPast(user); ok {
		return id, nil
	}
	return roost.JobID{}, fmt.Errorf("last: %w: you have submitted nothing yet", roost.NotFound)
}

// selected finds what one word names.
func (s *Schedd) selected(word string, f filter, who queue.Submitter, act bool) []target {
	mine := f.Filter
	mine.Owner = who.User
	switch {
	case word == "all":
		if act {
			return wholes(s.queue.Match(mine))
		}
		return wholes(s.queue.Match(f.Filter))
	case word == "last" || strings.HasPrefix(word, "last["):
		id, err := s.newest(who.User)
		if err != nil {
			return []target{{text: word, err: err}}
		}
		word = strconv.FormatUint(id.Seq, 10) + word[len("last"):]
	case strings.HasPrefix(word, "@"):
		mine.Name = word[1:]
		if ids := s.queue.Match(mine); len(ids) > 0 {
			return wholes(ids)
		}
		return []target{{text: word, err: fmt.Errorf("%s: %w: no job of yours in the queue has that name", word, roost.NotFound)}}
	}
	if first, last, ok := jobRange(word); ok {
		ids := slices.DeleteFunc(s.queue.Match(mine), func(id roost.JobID) bool { return id.Seq < first || id.Seq > last })
		if len(ids) > 0 {
			return wholes(ids)
		}
		return []target{{text: word, err: fmt.Errorf("%s: %w: no job of yours in the queue is among them", word, roost.NotFound)}}
	}
	t, err := queue.ParseTarget(word, s.node.Name)
	if err == nil && t.Job.Host == s.node.Name {
		t, err = s.queue.Locate(t) // of what is in the history, whoever looks there does
	}
	return []target{{Target: t, text: word, err: err}}
}

// jobRange reads "5-9".
func jobRange(word string) (first, last uint64, ok bool) {
	a, b, found := strings.Cut(word, "-")
	if !found {
		return 0, 0, false
	}
	first, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.ParseUint(b, 10, 64)
	return first, last, err == nil && first <= last
}

// oneTask turns the id of a task, or of a job with one task, into the task's. The loop calls it.
func (s *Schedd) oneTask(id string, who queue.Submitter) (roost.TaskID, error) {
	targets := s.selected(id, filter{}, who, false)
	if len(targets) != 1 || targets[0].err != nil {
		if len(targets) == 1 {
			return roost.TaskID{}, targets[0].err
		}
		return roost.TaskID{}, fmt.Errorf("%q: %w: it names several jobs", id, roost.Invalid)
	}
	t := targets[0].Target
	if t.Job.Host != s.node.Name {
		return roost.TaskID{}, s.present(t) // its number is another job's here
	}
	q := s.queue
	if _, ok := q.Status(t.Job.Seq); !ok {
		past, _, err := s.history.Job(t.Job.Seq)
		if err != nil {
			return t.Job.Task(0), nil // that there is no such job is told by whoever looks for it
		}
		if t, err = past.Locate(t); err != nil {
			return roost.TaskID{}, err
		}
		q = past
	}
	if one, ok := q.One(t); ok {
		return one, nil
	}
	if st, _ := q.Status(t.Job.Seq); len(t.Ranges) > 0 || st.Tasks > 1 {
		return roost.TaskID{}, fmt.Errorf("%v: %w: it has %d tasks; name one, as in %d[%d]", t, roost.Invalid, st.Tasks, t.Job.Seq, q.Index(t.Job.Task(0)))
	}
	return t.Job.Task(0), nil
}
