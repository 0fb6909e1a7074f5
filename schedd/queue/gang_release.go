package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// The program of an MPI gang may give back machines that it needs no more, and go on on
// the others (OpenPBS, pbs_release_nodes). The secondary tasks there are vacated, and
// count as done:
//
//	the primary ends          they stay done; what they used is the job's
//	the gang starts again     it asks for all that it was submitted with
//
// Nothing on the machine of the primary can be given back.

// NodeRelease says which machines a gang gives back. Where Nodes and Chunks are empty, it
// gives back all but the first Keep beside that of its primary.
type NodeRelease struct {
	Nodes  []string // with or without domain
	Chunks []int    // secondary tasks, by their number in the gang
	Keep   int
}

// NotReleasableError says what of that which is named cannot be given back, in OpenPBS's
// words, and what could be.
type NotReleasableError struct{ Text string }

func (e *NotReleasableError) Error() string { return e.Text }

// Unwrap says of which kind the error is.
func (e *NotReleasableError) Unwrap() error { return roost.Invalid }

func notReleasable(format string, args ...any) error {
	return &NotReleasableError{fmt.Sprintf(format, args...)}
}

// releasedReason is why an attempt is ended whose machine is given back.
const releasedReason = "its job has given the machine back"

// ReleaseNodes decides that a running MPI gang gives machines back.
func (q taskDecisions) ReleaseNodes(now time.Time, who CallerIdentity, t TaskSelector,
	r NodeRelease) ([]eventlog.JobEvent, error) {
	events, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.NodesReleased}, (*job).mayReleaseNodes)
	j, head := q.jobs[t.Job.Seq], 0
	if (err == nil || errors.Is(err, roost.Conflict)) && (j.spec.Array || len(j.state) > 1 && !j.spec.MPIGang) {
		whole := j.wholeGangs(t).Ranges
		if len(whole) != 1 || whole[0].Last-whole[0].First+1 != j.tasksPerIndex() {
			return nil, fmt.Errorf("%v: %w: name one task, as in %d[3]", t, ErrOneTaskOnly, j.seq)
		}
		head = whole[0].First
	}
	if err != nil {
		return nil, err
	}
	parts, err := q.partsToRelease(j, head, r)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	e := &events[0]
	e.Index, e.Attempt, e.Ranges = head, j.records.Own(head).Attempt, nil
	for _, k := range parts {
		e.Ranges = appendIndex(e.Ranges, k)
		if node := j.records.Own(k).Node; !slices.Contains(e.Hosts, node) {
			e.Hosts = append(e.Hosts, node)
		}
	}
	e.Reason = fmt.Sprintf("%d of its %d chunks, on %s", len(parts), j.spec.GangSize, strings.Join(e.Hosts, ", "))
	return events, nil
}

// ErrOneTaskOnly says that several tasks of an array are named.
var ErrOneTaskOnly = fmt.Errorf("%w: that is done to one task of an array", roost.Invalid)

// mayReleaseNodes reports whether a task is the primary one of a gang that runs or is
// being started. Its program may run before the queue knows.
func (j *job) mayReleaseNodes(i int) bool {
	return j.primaryOf(i) == i && (j.state[i] == roost.Running || j.state[i] == roost.Starting) &&
		!j.records.Own(i).RemoveWanted
}

// partsToRelease lists the tasks of a gang that a release means.
func (q taskDecisions) partsToRelease(j *job, head int, r NodeRelease) (parts []int, err error) {
	first := j.records.Own(head).Node
	var staying []string // in the order of the gang
	known := map[string]bool{}
	for k := head + 1; k <= head+max(j.spec.GangSize, 1)-1 && j.spec.MPIGang; k++ {
		task := j.records.Own(k)
		if task == nil || !task.Live || j.released[k] || task.Node == first {
			continue
		}
		named := func(name string) bool { return isNodeName(task.Node, name) }
		switch {
		case len(r.Chunks) > 0 && !slices.Contains(r.Chunks, k-head):
			continue
		case len(r.Nodes) > 0 && !slices.ContainsFunc(r.Nodes, named):
			continue
		case len(r.Chunks)+len(r.Nodes) == 0 && slices.Contains(staying, task.Node):
			continue
		case len(r.Chunks)+len(r.Nodes) == 0 && len(staying) < r.Keep:
			staying = append(staying, task.Node)
			continue
		}
		known[task.Node] = true
		parts = append(parts, k)
	}
	for _, name := range r.Nodes {
		switch {
		case isNodeName(first, name):
			return nil, notReleasable("Can't free '%s' since it's on a primary execution host: the job runs "+
				"there until it ends", name)
		case !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(n string) bool {
			return isNodeName(n, name)
		}):
			return nil, notReleasable("node(s) requested to be released not part of the job: %s: %s", name,
				j.release().releasable(head))
		}
	}
	if len(parts) == 0 {
		return nil, notReleasable("node(s) requested to be released not part of the job: %s",
			j.release().releasable(head))
	}
	return parts, nil
}

// gangRelease is what the gangs of a job have given back.
type gangRelease struct{ *job }

func (j *job) release() gangRelease { return gangRelease{j} }

// releasable says in words which machines a gang could give back.
func (j gangRelease) releasable(head int) string {
	var nodes []string
	first := j.records.Own(head).Node
	for k := head + 1; j.spec.MPIGang && k <= j.lastOfGang(head); k++ {
		if r := j.records.Own(k); r != nil && r.Live && !j.released[k] && r.Node != first &&
			!slices.Contains(nodes, r.Node) {
			nodes = append(nodes, r.Node)
		}
	}
	if len(nodes) == 0 {
		return fmt.Sprintf("it has none beside %s, where it runs until it ends", first)
	}
	return fmt.Sprintf("beside %s, where it runs, it has %s", first, strings.Join(nodes, ", "))
}

// isNodeName reports whether a name is that of a node, with its domain or without.
func isNodeName(node, name string) bool {
	return strings.EqualFold(node, name) ||
		len(name) > 0 && len(node) > len(name) && node[len(name)] == '.' && !strings.Contains(name, ".") &&
			strings.EqualFold(node[:len(name)], name)
}

// applyNodesReleased folds in that a gang gives machines back.
func (q *Queue) applyNodesReleased(j *job, e eventlog.JobEvent) {
	for _, r := range e.Ranges {
		for k := r.First; k <= r.Last; k++ {
			if task := j.records.Own(k); !j.isSecondary(k) || task == nil || !task.Live || j.released[k] {
				continue
			}
			if j.released == nil {
				j.ownExtras().released = map[int]bool{}
			}
			j.released[k] = true
			q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, k), Reason: releasedReason})
		}
	}
	head := j.primaryOf(e.Index)
	for k := head; k <= j.lastOfGang(head); k++ {
		if r := j.records.Own(k); r != nil && r.Live && !j.released[k] {
			q.changedHosts = append(q.changedHosts, q.attemptOf(j, k))
		}
	}
}

// reclaimReleased has a gang that starts again ask for what it had given back.
func (q *Queue) reclaimReleased(j *job, head int) {
	if len(j.released) == 0 || !j.isPrimary(head) {
		return
	}
	primary := j.records.Get(head)
	for k := head + 1; k <= j.lastOfGang(head); k++ {
		if !j.released[k] {
			continue
		}
		delete(j.released, k)
		if j.state[k] != roost.Completed {
			continue // its attempt ends, and it waits like the others then
		}
		q.requeueOrHold(j, k, &eventlog.TaskRecord{})
		if primary != nil && primary.HoldWanted {
			r := j.records.MakeOwn(k)
			r.HoldWanted, r.HoldReason, r.RequestedBy = true, primary.HoldReason, primary.RequestedBy
			q.setTaskState(j, k, roost.Held)
		}
	}
}

// releasedActive counts the tasks that were given back of gangs that are active.
func (j gangRelease) releasedActive() (n int) {
	for k := range j.released {
		if j.state[k] == roost.Completed && j.state[j.primaryOf(k)].IsActive() &&
			j.state[j.primaryOf(k)] != roost.Suspended {
			n++
		}
	}
	return n
}

// releasedUsage is the CPU time that the tasks of a gang used which were given back.
func (j gangRelease) releasedUsage(head int) (u eventlog.CPUUsage) {
	for k := head + 1; len(j.released) > 0 && k <= j.lastOfGang(head); k++ {
		if r := j.records.Get(k); j.released[k] && r != nil && !r.Live && r.Exit != nil {
			u.User, u.System = u.User+r.Exit.User, u.System+r.Exit.System
		}
	}
	return u
}

// TakeChangedHosts drains the attempts whose job has other machines now than before.
func (q *pendingEffects) TakeChangedHosts() []roost.AttemptID {
	out := q.changedHosts
	q.changedHosts = nil
	return out
}

// HasReleasedNodes reports whether the gang of a live attempt has given back machines of
// others. Its file of nodes may be out of date then.
func (q *jobTable) HasReleasedNodes(a roost.AttemptID) bool {
	if !q.IsLive(a) {
		return false
	}
	j := q.jobs[a.Task.Job.Seq]
	if len(j.released) == 0 || j.released[a.Task.Index] {
		return false
	}
	head := j.primaryOf(a.Task.Index)
	for k := head + 1; k <= j.lastOfGang(head); k++ {
		if j.released[k] {
			return true
		}
	}
	return false
}

// releasedRanges are the tasks that were given back, for a snapshot.
func (j gangRelease) releasedRanges() (ranges []eventlog.IndexRange) {
	for _, k := range slices.Sorted(maps.Keys(j.released)) {
		ranges = appendIndex(ranges, k)
	}
	return ranges
}

// restoreReleased brings back which tasks were given back.
func (j gangRelease) restoreReleased(ranges []eventlog.IndexRange) {
	for _, r := range ranges {
		for k := r.First; k <= r.Last; k++ {
			if !j.isSecondary(k) {
				panic(fmt.Sprintf("task %d is given back, and is no secondary one", k))
			}
			if j.released == nil {
				j.ownExtras().released = map[int]bool{}
			}
			j.released[k] = true
		}
	}
}

// checkReleased panics when a task is given back that could not be.
func (j gangRelease) checkReleased() {
	for k := range j.released {
		if !j.isSecondary(k) || !j.state[k].IsActive() && !j.state[k].IsFinal() {
			panic(fmt.Sprintf("queue: task %d of job %d is given back, and %v", k, j.seq, j.state[k]))
		}
	}
}
