package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobpolicy"
)

// Conditions of users are looked at in rounds through all jobs that have any. A round
// begins policyInterval after the one before it, or later if that had many tasks: each
// has policyShare, of which its evaluation takes about a hundredth.
const (
	policyInterval = 5 * time.Second
	policyShare    = time.Millisecond
	policyTasks    = 500 // that are looked at in one turn of the loop
)

// maxPolicyRuns is after how many runs a task is held whose condition never lets it end.
const maxPolicyRuns = 10_000

// taskPolicies decides what becomes of tasks by the conditions that their users gave
// (HTCondor manual, condor_submit, "Policy Commands").
type taskPolicies struct {
	table      *jobTable
	policyJobs map[uint64]bool // those with periodic conditions
	round      []uint64        // the jobs of this round that are still to come, the next one last
	next       int             // the task of the last of them to go on with
	seen       int             // tasks that were looked at in this round
	began      time.Time       // this round, or the last one
	uses       map[roost.TaskID]taskUse
}

// taskUse is what the live attempt of a task with conditions has used, and uses.
type taskUse struct {
	attempt roost.AttemptNumber
	cpu     time.Duration
	memory  roost.Bytes
}

// NotePolicyUse takes in what an attempt has used of cores, and uses of memory.
func (q *taskPolicies) NotePolicyUse(a roost.AttemptID, cpu time.Duration, memory roost.Bytes) {
	j := q.table.jobs[a.Task.Job.Seq]
	if j == nil || j.spec.Policy == nil || !q.table.IsLive(a) {
		return
	}
	if q.uses == nil {
		q.uses = map[roost.TaskID]taskUse{}
	}
	u := q.uses[a.Task]
	q.uses[a.Task] = taskUse{a.Attempt, cpu, max(memory, u.memory)}
}

// addPolicy takes in the conditions of a job, or that it has none any more.
func (q *taskPolicies) addPolicy(j *job) {
	if p := j.spec.Policy; p != nil && p.HasPeriodic() {
		if q.policyJobs == nil {
			q.policyJobs = map[uint64]bool{}
		}
		q.policyJobs[j.seq] = true
	} else {
		delete(q.policyJobs, j.seq)
	}
}

// NextPolicies is when DecidePolicies has something to look at next; zero for never.
func (q *taskPolicies) NextPolicies() time.Time {
	switch {
	case len(q.round) > 0:
		return q.began
	case len(q.policyJobs) == 0:
		return time.Time{}
	}
	return q.began.Add(max(policyInterval, time.Duration(q.seen)*policyShare))
}

// DecidePolicies looks at the conditions of some tasks and decides what becomes of them.
func (q *taskPolicies) DecidePolicies(now time.Time) (events []eventlog.JobEvent) {
	if at := q.NextPolicies(); at.IsZero() || now.Before(at) && at.Sub(now) <= time.Duration(q.seen)*policyShare+
		policyInterval { // else the clock was set back
		return nil
	}
	if len(q.round) == 0 {
		q.round, q.next, q.seen, q.began = slices.Sorted(maps.Keys(q.policyJobs)), 0, 0, now
		slices.Reverse(q.round)
	}
	for left := policyTasks; left > 0 && len(q.round) > 0; {
		j := q.table.jobs[q.round[len(q.round)-1]]
		if j == nil || !q.policyJobs[j.seq] || j.isFinal() || q.next >= len(j.state) {
			q.round, q.next = q.round[:len(q.round)-1], 0
			continue
		}
		last := min(q.next+left, len(j.state))
		events = append(events, q.decideTasks(now, j, q.next, last)...)
		left, q.seen, q.next = left-(last-q.next), q.seen+last-q.next, last
	}
	return events
}

// decideTasks looks at the conditions of some tasks of a job. Those with the same verdict
// share an event.
func (q *taskPolicies) decideTasks(now time.Time, j *job, from, to int) (events []eventlog.JobEvent) {
	judge := j.spec.Policy.Judge(parsedAd(j), now)
	where := map[jobpolicy.Verdict]int{}
	for i := from; i < to; i++ {
		r := j.records.Get(i)
		if j.state[i].IsFinal() || r != nil && (r.RemoveWanted || r.Live && (r.HoldWanted || r.RequeueWanted)) {
			continue
		}
		f := taskFacts(j, i, nil)
		if u, ok := q.uses[j.id(q.table.host).Task(i)]; ok && r != nil && r.Live && r.Attempt == u.attempt {
			f.Exit, f.Live = &jobpolicy.Exit{User: int64(u.cpu), Peak: int64(u.memory)}, true
		}
		v := judge.Periodic(f)
		what, ok := map[jobpolicy.Action]eventlog.EventType{jobpolicy.Hold: eventlog.Held,
			jobpolicy.Release: eventlog.Released, jobpolicy.Remove: eventlog.RemovalRequested,
			jobpolicy.Vacate: eventlog.Requeued}[v.Action]
		if !ok {
			continue
		}
		at, there := where[v]
		if !there {
			at = len(events)
			where[v], events = at, append(events, eventlog.JobEvent{Type: what, Time: now.UnixNano(), Job: j.seq,
				Reason: v.Reason})
		}
		events[at].Ranges = appendIndex(events[at].Ranges, i)
	}
	if j.spec.GangSize > 1 && len(events) > 1 { // each is for the whole gang
		events = events[:1]
	}
	for i := range events {
		events[i].Ranges = j.wholeGangs(TaskSelector{Ranges: events[i].Ranges}).Ranges
	}
	return events
}

// taskFacts is what the conditions of a job are evaluated on. An exit is that of the
// attempt that ends now.
func taskFacts(j *job, i int, exit *eventlog.AttemptExit) jobpolicy.Facts {
	f := jobpolicy.Facts{Job: j.seq, Index: i, State: j.state[i], Submitted: j.submitted, Entered: j.submitted}
	r := j.records.Get(i)
	if r == nil {
		r = &eventlog.TaskRecord{}
	}
	f.Attempts, f.Started, f.HoldReason = int(r.Attempt), r.Started, r.HoldReason
	f.Uncertain = j.distrust != recordDamage{}
	f.HeldByUser = r.RequestedBy != "" || j.spec.HoldOnSubmit && r.HoldReason == ""
	if p := r.Policy; p != nil {
		f.Entered, f.Completions, f.Holds, f.RunTime = p.Entered, p.Completions, p.Holds, p.RunTime
	}
	if x := r.Exit; x != nil && exit == nil && !r.Live {
		f.Exit = exitFacts(x)
	}
	if exit != nil {
		f.State, f.Exit = roost.Completed, exitFacts(exit)
		f.Completions, f.RunTime = f.Completions+1, f.RunTime+exit.Wall
	}
	return f
}

func exitFacts(x *eventlog.AttemptExit) *jobpolicy.Exit {
	return &jobpolicy.Exit{Code: x.Code, Signal: x.Signal, Core: x.Core, User: x.User, System: x.System,
		MaxRSS: x.MaxRSS, Peak: x.Used.Peak, Disk: x.Used.Disk}
}

// judgeExit adds to the end of an attempt what its user's conditions make of it.
func (q attemptDecisions) judgeExit(now time.Time, a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	j := q.jobs[a.Task.Job.Seq]
	if p := j.spec.Policy; p == nil || !p.HasOnExit() || x.Cause != eventlog.CauseExited ||
		isRestartExit(j.spec.Checkpoints, x) {
		return x
	}
	y, f := *x, taskFacts(j, a.Task.Index, x)
	y.Verdict = j.spec.Policy.Judge(parsedAd(j), now).AtExit(f)
	if y.Verdict.Action == jobpolicy.RunAgain && f.Completions >= maxPolicyRuns {
		y.Verdict.Action, y.Verdict.Reason = jobpolicy.Hold, "10,000 runs, and still "+y.Verdict.Reason
	}
	return &y
}

// applyVerdict is for a program that has ended by itself. It does with the task what the
// conditions of its user say; false if they say nothing.
func (q endedTasks) applyVerdict(j *job, i int, r *eventlog.TaskRecord, v jobpolicy.Verdict) bool {
	if j.spec.Policy != nil {
		r.OwnPolicy().Completions++
	}
	switch v.Action {
	case jobpolicy.Hold:
		if !r.HoldWanted {
			r.HoldWanted, r.HoldReason = true, v.Reason
		}
		q.requeueOrHold(j, i, resetWalltime(r))
	case jobpolicy.RunAgain:
		q.requeueOrHold(j, i, resetWalltime(r))
	case jobpolicy.Leave:
		q.completeTask(j, i, !r.Exit.IsSuccess())
	default:
		return false
	}
	return true
}

// addRunTime adds how long an attempt ran that has ended.
func (q endedTasks) addRunTime(j *job, r *eventlog.TaskRecord, wall int64) {
	if j.spec.Policy != nil {
		r.OwnPolicy().RunTime += wall
	}
}

// notePolicyState notes since when a task is in its state, for the conditions of its job.
func notePolicyState(j *job, i int, from, to roost.TaskState, now int64) {
	if j.spec.Policy == nil || to.IsFinal() || jobpolicy.Status(from) == jobpolicy.Status(to) {
		return
	}
	p := j.records.MakeOwn(i).OwnPolicy()
	p.Entered = now
	if to == roost.Held {
		p.Holds++
	}
}
