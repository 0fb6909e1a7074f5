package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// An alloc set is a job whose tasks hold resources of machines, and run nothing (Borg
// §2.4). The negotiator places them as it places all tasks. Other jobs are inside an
// alloc set: their tasks run in what its tasks hold. The negotiator does not see these.
// The schedd starts them wherever an alloc is open:
//
//	an alloc's task:    Idle ─▶ Starting ─▶ Running: it is open ─▶ (Ended, Lost) ─▶ Idle
//	a task inside:      Idle ────────────▶ Starting ─▶ …          ─▶ (Ended, Lost) ─▶ Idle
//
// An alloc that loses its machine loses all that is inside. Its task is placed again, and
// those of the others follow it.

// InsideTasks says which tasks of a request are ready, and inside which allocs they are
// to run.
type InsideTasks struct {
	Allocs   []roost.TaskID // the alloc of each ready task; or all that are open
	Anywhere bool           // any of those will do
}

// TasksInside returns what a request wants of its alloc set; false for a request whose
// tasks run on machines.
func (q *requestIndex) TasksInside(id RequestID) (w InsideTasks, ok bool) {
	r := q.requests[id]
	if r == nil || r.Inside.Alloc == 0 {
		return w, false
	}
	w.Anywhere = r.Inside.Anywhere
	set := q.jobs[r.Inside.Alloc]
	if set == nil || !set.spec.IsAlloc {
		return w, true
	}
	if w.Anywhere {
		for i, s := range set.state {
			if s == roost.Running {
				w.Allocs = append(w.Allocs, set.id(q.host).Task(i))
			}
		}
		return w, true
	}
	for _, c := range r.classes {
		for i := c.ready.First(); i >= 0; i = c.ready.After(i) {
			if i < len(set.state) && set.state[i] == roost.Running {
				w.Allocs = append(w.Allocs, set.id(q.host).Task(i))
			}
		}
	}
	slices.SortFunc(w.Allocs, func(a, b roost.TaskID) int { return a.Index - b.Index })
	return w, true
}

// NextInside returns the task of a request that should run next inside an alloc.
func (q *requestIndex) NextInside(id RequestID, alloc roost.TaskID) (roost.TaskID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 || r.Inside.Alloc != alloc.Job.Seq {
		return roost.TaskID{}, false
	}
	if r.Inside.Anywhere {
		return q.NextTask(id)
	}
	for _, c := range r.classes {
		if c.ready.Has(alloc.Index) {
			return c.job.id(q.host).Task(alloc.Index), true
		}
	}
	return roost.TaskID{}, false
}

// AssignInside is AssignNext for a claim inside an alloc. It is false when the alloc is
// not open any more.
func (q attemptDecisions) AssignInside(now time.Time, t, alloc roost.TaskID, node, address string,
	claim uint64) (eventlog.JobEvent, roost.AttemptID, bool) {
	set := q.jobs[alloc.Job.Seq]
	if set == nil || alloc.Index >= len(set.state) || set.state[alloc.Index] != roost.Running {
		return eventlog.JobEvent{}, roost.AttemptID{}, false
	}
	e, a, err := q.AssignNext(now, t, node, address, claim)
	if err != nil {
		return e, a, false
	}
	e.AllocIndex, e.AllocAttempt = alloc.Index, set.records.Own(alloc.Index).Attempt
	return e, a, true
}

// LastAlloc returns the alloc inside which the last attempt of a task was; false if the
// task runs on machines.
func (q attemptDecisions) LastAlloc(t roost.TaskID) (alloc roost.TaskID, ok bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || j.spec.Inside.Alloc == 0 || t.Index >= len(j.state) {
		return alloc, false
	}
	alloc.Job = roost.JobID{Seq: j.spec.Inside.Alloc, Host: q.host}
	if r := j.records.Own(t.Index); r != nil {
		alloc.Index = r.AllocIndex
	}
	return alloc, true
}

// allocOf returns which attempt holds the alloc of a live one, and its claim if it is
// live.
func allocOf(q *jobTable, j *job, r *eventlog.TaskRecord) (alloc roost.AttemptID, claim uint64) {
	if r.AllocAttempt == 0 {
		return alloc, 0
	}
	id := roost.JobID{Seq: j.spec.Inside.Alloc, Host: q.host}
	alloc = roost.AttemptID{Task: id.Task(r.AllocIndex), Attempt: r.AllocAttempt}
	if q.IsLive(alloc) {
		claim = q.jobs[id.Seq].records.Own(r.AllocIndex).Claim
	}
	return alloc, claim
}

// WakeInside has the requests of all jobs inside an alloc set looked at again.
func (q *requestIndex) WakeInside(set uint64) {
	for _, seq := range q.inside[set] {
		for _, c := range q.jobs[seq].classes {
			if c.count > 0 {
				q.markDirty(c.request)
			}
		}
	}
}

// leaveAlloc is for a job that leaves the queue, or its alloc set.
func leaveAlloc(q *jobTable, j *job) {
	if in := j.spec.Inside.Alloc; in != 0 {
		q.inside[in] = slices.DeleteFunc(q.inside[in], func(seq uint64) bool { return seq == j.seq })
		if len(q.inside[in]) == 0 {
			delete(q.inside, in)
		}
	}
}

// removeInside decides to remove what could not run any more without the allocs that are
// removed.
func (q taskDecisions) removeInside(now time.Time, who CallerIdentity, t TaskSelector,
	force bool) (events []eventlog.JobEvent) {
	set := q.jobs[t.Job.Seq]
	if !set.spec.IsAlloc {
		return nil
	}
	for _, seq := range q.inside[set.seq] {
		j := q.jobs[seq]
		inner := TaskSelector{Job: j.id(q.host)}
		switch {
		case len(t.Ranges) == 0:
		case j.spec.Inside.Anywhere:
			continue // there are others
		default:
			for _, r := range t.Ranges {
				if r.Last = min(r.Last, len(j.state)-1); r.First <= r.Last {
					inner.Ranges = append(inner.Ranges, r)
				}
			}
			if len(inner.Ranges) == 0 {
				continue
			}
		}
		owner := who
		owner.Admin = true // of what is inside, whosever it is
		more, err := q.decideChange(now, owner, inner, eventlog.JobEvent{Type: eventlog.RemovalRequested, Force: force,
			Reason: fmt.Sprintf("its alloc %v was removed", t)},
			func(s roost.TaskState) bool { return !s.IsFinal() })
		if err == nil { // else all of them have ended
			events = append(events, more...)
		}
	}
	return events
}

// insideReason says what a ready task waits for that is to run inside an alloc set.
func (q statusView) insideReason(j *job, i int) string {
	in := j.spec.Inside
	id := roost.JobID{Seq: in.Alloc, Host: q.host}
	set := q.jobs[in.Alloc]
	switch {
	case set == nil || !set.spec.IsAlloc || set.isFinal():
		return fmt.Sprintf("its alloc set %v has ended, and it can run nowhere else", id)
	case in.Anywhere && set.counts[roost.Running] == 0:
		return fmt.Sprintf("waits until an alloc of %v has a machine", id)
	case in.Anywhere:
		return fmt.Sprintf("waits until an alloc of %v has room for %v", id, j.class(i).spec.Resources)
	case set.state[i] != roost.Running:
		return fmt.Sprintf("waits for its alloc %v, which is %v", id.Task(i), set.state[i])
	}
	return fmt.Sprintf("waits until its alloc %v has room for %v", id.Task(i), j.class(i).spec.Resources)
}

// AllocStatus is what is inside an alloc set, or inside one alloc of it.
type AllocStatus struct {
	Open     int             // allocs that have a machine
	Tasks    int             // inside, that run or are about to
	Inside   roost.Resources // what these ask for, together
	Jobs     []roost.JobID   // that are to be inside and have not ended, at most maxAllocJobs
	MoreJobs int             // further such jobs
	Users    []string        // whose jobs may be inside besides its owner's
}

// maxAllocJobs bounds the jobs inside an alloc set that are told of.
const maxAllocJobs = 32

// allocStatus tells what is inside an alloc set; nil for a job that is none. With an
// index that is not below 0 it is about that alloc.
func (q statusView) allocStatus(set *job, index int) *AllocStatus {
	if !set.spec.IsAlloc {
		return nil
	}
	a := &AllocStatus{Users: set.spec.AllocUsers, Open: int(set.counts[roost.Running])}
	if index >= 0 {
		a.Open = 0
		if set.state[index] == roost.Running {
			a.Open = 1
		}
	}
	for _, seq := range slices.Sorted(slices.Values(q.inside[set.seq])) {
		j := q.jobs[seq]
		if j.isFinal() || index >= 0 && !j.spec.Inside.Anywhere && index >= len(j.state) {
			continue
		}
		if len(a.Jobs) < maxAllocJobs {
			a.Jobs = append(a.Jobs, j.id(q.host))
		} else {
			a.MoreJobs++
		}
		q.addTasksInside(a, j, index)
	}
	return a
}

// addTasksInside adds the tasks of a job that run inside an alloc. An index below 0
// stands for all allocs.
func (q statusView) addTasksInside(a *AllocStatus, j *job, index int) {
	if j.active == 0 {
		return
	}
	first, last := 0, len(j.state)-1
	if index >= 0 && !j.spec.Inside.Anywhere { // each task is in the alloc of its own index
		first, last = index, index
	}
	for i := first; i <= last; i++ {
		if r := j.records.Own(i); j.state[i].IsActive() && (index < 0 || r.AllocIndex == index) {
			a.Tasks++
			a.Inside = a.Inside.Add(j.class(i).request.Resources)
		}
	}
}

// InsideStatus says inside which alloc set the tasks of a job run.
type InsideStatus struct {
	Set      roost.JobID
	Anywhere bool         // inside any alloc that has room; else inside that of the same index
	Alloc    roost.TaskID // of a task that runs; zero otherwise
}

// insideStatus tells inside which alloc set a job is; nil for a job on machines. With an
// index that is not below 0 it tells inside which alloc that task is.
func (q statusView) insideStatus(j *job, index int) *InsideStatus {
	if j.spec.Inside.Alloc == 0 {
		return nil
	}
	in := &InsideStatus{Set: roost.JobID{Seq: j.spec.Inside.Alloc, Host: q.host}, Anywhere: j.spec.Inside.Anywhere}
	if index >= 0 && j.state[index].IsActive() {
		in.Alloc = in.Set.Task(j.records.Own(index).AllocIndex)
	}
	return in
}

// addAllocs adds what is inside an alloc set, or inside which one a job is. With an index
// that is not below 0 it is about that task.
func (q statusView) addAllocs(s *JobStatus, j *job, index int) {
	if len(j.state) == 1 {
		index = 0
	}
	s.Alloc, s.Inside = q.allocStatus(j, index), q.insideStatus(j, index)
}

// openReason says what is inside an alloc that is open.
func (q statusView) openReason(set *job, i int) string {
	switch inside := q.allocStatus(set, i).Tasks; inside {
	case 0:
		return "held open, nothing inside"
	case 1:
		return "held open, 1 task inside"
	default:
		return fmt.Sprintf("held open, %d tasks inside", inside)
	}
}

// checkAllocs checks that no task inside an alloc set is outside its alloc. Those inside
// an alloc have no more than it has (S9). Where the set was altered only the machines
// know that: one makes an alloc smaller when what was inside has ended there, which may
// be recorded later.
func (q *requestIndex) checkAllocs() {
	for set, jobs := range q.inside {
		held := map[int]roost.Resources{}
		for _, seq := range jobs {
			j := q.jobs[seq]
			if j == nil || j.spec.Inside.Alloc != set {
				panic(fmt.Sprintf("queue: job %d is inside alloc set %d, and is not there", seq, set))
			}
			q.addInside(j, held)
		}
		if s := q.jobs[set]; s != nil && s.spec.Alterations == 0 {
			for i, sum := range held {
				if has := s.class(i).request.Resources; !sum.FitsIn(has) {
					panic(fmt.Sprintf("queue: %v has %v, and what is inside %v", s.id(q.host).Task(i), has, sum))
				}
			}
		}
	}
	for seq, j := range q.jobs {
		if in := j.spec.Inside.Alloc; in != 0 && !slices.Contains(q.inside[in], seq) {
			panic(fmt.Sprintf("queue: job %d is not known to be inside alloc set %d", seq, in))
		}
	}
}

// addInside adds what the tasks of a job have of the allocs that are open.
func (q *requestIndex) addInside(j *job, held map[int]roost.Resources) {
	set := q.jobs[j.spec.Inside.Alloc]
	for i, s := range j.state {
		r := j.records.Own(i)
		if !s.IsActive() || set == nil {
			continue
		}
		if r.AllocAttempt == 0 || r.AllocIndex >= len(set.state) || !j.spec.Inside.Anywhere && r.AllocIndex != i {
			panic(fmt.Sprintf("queue: %v is inside attempt %d of alloc %d", j.id(q.host).Task(i), r.AllocAttempt,
				r.AllocIndex))
		}
		alloc := set.records.Own(r.AllocIndex)
		if alloc == nil || !alloc.Live || alloc.Attempt != r.AllocAttempt {
			continue // it has ended, and this one's end is not recorded yet
		}
		if alloc.Node != r.Node {
			panic(fmt.Sprintf("queue: %v runs on %s, and its alloc is on %s", j.id(q.host).Task(i), r.Node, alloc.Node))
		}
		task := j.class(i).request.Resources
		task.GPUs, task.GPUMemory = 0, 0 // several may share one
		held[r.AllocIndex] = held[r.AllocIndex].Add(task)
	}
}
