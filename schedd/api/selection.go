package api

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

// selectionTarget is one thing that a selection names, or why it names nothing.
type selectionTarget struct {
	queue.TaskSelector
	text   string
	err    error
	isPart bool // one of several that a word stands for
}

// selectTargets finds what a selection names among the jobs of the queue. Words that
// stand for several jobs ("all", "last", "@name", a range) mean the caller's own; ids
// mean whatever they name.
func (v *jobView) selectTargets(sel *wire.Selection, who queue.CallerIdentity, act bool) ([]selectionTarget, error) {
	filter, err := newFilter(sel, who)
	if err != nil {
		return nil, err
	}
	if len(sel.GetSelectors()) == 0 {
		if act {
			return nil, fmt.Errorf("%w: it is not said which jobs are meant: name ids, or all", roost.Invalid)
		}
		return filter.apply(v.queue, wholeJobs(v.queue.MatchingJobs(filter.JobFilter))), nil
	}
	var out []selectionTarget
	for _, word := range sel.GetSelectors() {
		found := v.wordTargets(word, filter, who, act)
		if len(found) > maxSelected || len(out)+len(found) > maxSelected {
			return nil, fmt.Errorf("%w: more than %d jobs are named", roost.Exhausted, maxSelected)
		}
		out = append(out, found...)
	}
	return filter.apply(v.queue, out), nil
}

// maxSelected bounds how many jobs one call may name.
const maxSelected = 10_000_000

// selectionFilter is a selection's conditions.
type selectionFilter struct {
	queue.JobFilter
	user        queue.CallerIdentity
	first, last uint64 // job numbers, both included; last 0 for any
	constraint  classad.Expr
	queue       bool
}

func newFilter(sel *wire.Selection, who queue.CallerIdentity) (f selectionFilter, err error) {
	f.user = who
	if sel.GetMine() {
		f.Owner = who.User
	}
	for _, name := range sel.GetStates() {
		if name == "failed" {
			f.WithFailedTask = true
			continue
		}
		state, err := roost.ParseTaskState(name)
		if err != nil {
			return f, fmt.Errorf("%w: %w; use one of %s, or failed", roost.Invalid, err,
				strings.Join(roost.TaskStateNames(), ", "))
		}
		f.States = append(f.States, state)
	}
	if sel.GetConstraint() != "" {
		if f.constraint, err = classad.ParseExpr(sel.GetConstraint()); err != nil {
			return f, fmt.Errorf("constraint: %w: %w", roost.Invalid, err)
		}
		f.queue = true
	}
	return f, nil
}

// apply drops the targets that the conditions leave out. What was named by its id is left
// out too, when it does not meet them.
func (f selectionFilter) apply(jobs *queue.Queue, in []selectionTarget) []selectionTarget {
	if !f.queue && len(f.States) == 0 && !f.WithFailedTask && f.Owner == "" {
		return in
	}
	env := constraintEnv()
	return slices.DeleteFunc(in, func(t selectionTarget) bool {
		if t.err != nil {
			return false
		}
		status, ok := jobs.Status(t.Job.Seq)
		return ok && !f.admits(jobs, status, env)
	})
}

// constraintSteps limits the nodes that a user's constraint may evaluate for one job.
// Thus no query blocks a queue of many jobs.
const constraintSteps = 10_000

func constraintEnv() *classad.EvalEnv {
	return &classad.EvalEnv{Now: time.Now(), Steps: constraintSteps}
}

// admits reports whether a job of a queue meets the conditions.
func (f selectionFilter) admits(q *queue.Queue, st queue.JobStatus, env *classad.EvalEnv) bool {
	if f.Owner != "" && st.Owner != f.Owner || f.Name != "" && st.Name != f.Name {
		return false
	}
	if len(f.States) > 0 || f.WithFailedTask {
		any := f.WithFailedTask && st.Failed > 0
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
	if f.queue && !mayReadAd(f.user, &st) { // what is not shown must not be found out by asking either
		return q.MatchesAd(st.Job.Seq, f.constraint, env, privateAttributes...)
	}
	return !f.queue || q.MatchesAd(st.Job.Seq, f.constraint, env)
}

// historySelector returns the filter for the history that a word for several jobs stands
// for. It returns false for a word that names a single job.
func (f selectionFilter) historySelector(word string) (selectionFilter, bool) {
	if word == "all" {
		return f, true
	}
	f.Owner = f.user.User
	if name, ok := strings.CutPrefix(word, "@"); ok {
		f.Name = name
		return f, true
	}
	var ok bool
	f.first, f.last, ok = jobRange(word)
	return f, ok
}

func wholeJobs(ids []roost.JobID) []selectionTarget {
	out := make([]selectionTarget, len(ids))
	for i, id := range ids {
		out[i] = selectionTarget{TaskSelector: queue.TaskSelector{Job: id}, text: id.String(), isPart: true}
	}
	return out
}

// newestJob finds the newest job of a user, also if it has ended.
func (v *jobView) newestJob(user string) (roost.JobID, error) {
	if id, ok := v.queue.NewestJob(user); ok {
		return id, nil
	}
	if id, ok := v.newestHistoryJob(user); ok {
		return id, nil
	}
	return roost.JobID{}, fmt.Errorf("last: %w: you have submitted nothing yet", roost.NotFound)
}

// wordTargets finds what one word names.
func (v *jobView) wordTargets(word string, f selectionFilter, who queue.CallerIdentity, act bool) []selectionTarget {
	mine := f.JobFilter
	mine.Owner = who.User
	switch {
	case word == "all":
		if act {
			return wholeJobs(v.queue.MatchingJobs(mine))
		}
		return wholeJobs(v.queue.MatchingJobs(f.JobFilter))
	case word == "last" || strings.HasPrefix(word, "last["):
		id, err := v.newestJob(who.User)
		if err != nil {
			return []selectionTarget{{text: word, err: err}}
		}
		word = strconv.FormatUint(id.Seq, 10) + word[len("last"):]
	case strings.HasPrefix(word, "@"):
		mine.Name = word[1:]
		if ids := v.queue.MatchingJobs(mine); len(ids) > 0 {
			return wholeJobs(ids)
		}
		return []selectionTarget{{text: word,
			err: fmt.Errorf("%s: %w: no job of yours in the queue has that name", word, roost.NotFound)}}
	}
	if first, last, ok := jobRange(word); ok {
		ids := slices.DeleteFunc(v.queue.MatchingJobs(mine), func(id roost.JobID) bool {
			return id.Seq < first || id.Seq > last
		})
		if len(ids) > 0 {
			return wholeJobs(ids)
		}
		return []selectionTarget{{text: word,
			err: fmt.Errorf("%s: %w: no job of yours in the queue is among them", word, roost.NotFound)}}
	}
	t, err := queue.ParseSelector(word, v.node.Name)
	if err == nil && t.Job.Host == v.node.Name {
		t, err = v.queue.LocateTasks(t) // of what is in the history, whoever looks there does
	}
	return []selectionTarget{{TaskSelector: t, text: word, err: err}}
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

// taskID turns the id of a task, or of a job with one task, into the task's. The loop
// calls it.
func (v *jobView) taskID(id string, who queue.CallerIdentity) (roost.TaskID, error) {
	targets := v.wordTargets(id, selectionFilter{}, who, false)
	if len(targets) != 1 || targets[0].err != nil {
		if len(targets) == 1 {
			return roost.TaskID{}, targets[0].err
		}
		return roost.TaskID{}, fmt.Errorf("%q: %w: it names several jobs", id, roost.Invalid)
	}
	t := targets[0].TaskSelector
	if t.Job.Host != v.node.Name {
		return roost.TaskID{}, v.mustBeQueued(t) // its number is another job's here
	}
	q := v.queue
	if _, ok := q.Status(t.Job.Seq); !ok {
		past, _, err := v.history.Job(t.Job.Seq)
		if err != nil {
			return t.Job.Task(0), nil // that there is no such job is told by whoever looks for it
		}
		if t, err = past.LocateTasks(t); err != nil {
			return roost.TaskID{}, err
		}
		q = past
	}
	if one, ok := q.SingleTask(t); ok {
		return one, nil
	}
	if st, _ := q.Status(t.Job.Seq); len(t.Ranges) > 0 || st.Tasks > 1 {
		return roost.TaskID{}, fmt.Errorf("%v: %w: it has %d tasks; name one, as in %d[%d]", t, roost.Invalid, st.Tasks,
			t.Job.Seq, q.UserIndex(t.Job.Task(0)))
	}
	return t.Job.Task(0), nil
}

// newestHistoryJob finds the newest job of a user in the history.
func (v *jobView) newestHistoryJob(user string) (id roost.JobID, found bool) {
	seq, found, err := v.history.LastOf(user)
	if err != nil {
		v.log.Error("the history cannot be read", "error", err)
	}
	return roost.JobID{Seq: seq, Host: v.node.Name}, found
}
