package queue

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/jobstate"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// A flow is a job that runs nothing itself: its only task is blocked until the flow has
// ended. Each part of a node that begins is a job of its own with a submit key of which
// the part can be told: the flow, how often that was begun, the node, its attempt and the
// part. In the log that job comes first, and then that the part has begun. Where the log
// ends between the two, the job is found by its key. So each part of an attempt has one
// job, whatever happens in between (invariant F1).
//
//	Submitted (key) ─▶ FlowAdvanced(PartBegun) ─▶ … the job ends … ─▶ FlowAdvanced(PartEnded)
//
// What the flow does next is decided by package flow. A held flow begins nothing; a
// removed one ends when its FINAL node has, and no job of it is left.

// jobFlow is a flow in the queue.
type jobFlow struct {
	plan     *plan.Plan
	run      *flow.Run
	err      error // why this program cannot read the plan; then nothing of it runs
	form     []byte
	ads      []string                // of the templates, as they were admitted
	jobs     map[graph.NodeID]uint64 // that run a part of a node
	failures []eventlog.FlowFailure  // the first ones of this run
	log      *jobstate.Log           // nil: none is written, or not here

	parsed  []*classad.Ad // of the templates, once they were used
	specs   []jobad.JobSpec
	isDue   bool   // it is in the list of those that are looked at
	isOld   bool   // it is from the disk: whether its jobs are there was not looked at yet
	waits   string // why a part cannot begin that may; empty: none waits for that
	retryAt int64  // when that is tried again, unix nanoseconds
}

// maxFlowFailures bounds the failures that a flow remembers.
const maxFlowFailures = 100

// openFlow returns the flow of a submission. It has not begun.
func openFlow(s *eventlog.SubmittedJob) *jobFlow {
	f := &jobFlow{form: s.Flow, ads: s.FlowAds, plan: s.Plan, jobs: map[graph.NodeID]uint64{}}
	if f.plan == nil {
		f.plan, f.err = plan.Decode(s.Flow)
	}
	if f.err == nil && len(f.ads) != len(f.plan.Templates) {
		f.err = fmt.Errorf("%w: it has %d templates and %d ads", roost.Invalid, len(f.plan.Templates), len(f.ads))
	}
	if f.err != nil {
		return f
	}
	f.run = flow.New(f.plan.Definition(), f.plan.Limits)
	f.parsed, f.specs = make([]*classad.Ad, len(f.ads)), make([]jobad.JobSpec, len(f.ads))
	for i, text := range f.ads[1:] {
		if f.parsed[i+1], f.err = classad.Parse(text); f.err == nil {
			f.specs[i+1], f.err = jobad.ReadSpec(f.parsed[i+1])
		}
		if f.err != nil {
			f.err = fmt.Errorf("the jobs of %s: %w", f.plan.Templates[i+1].Source, f.err)
			return f
		}
	}
	return f
}

// addFlow takes in what a new job has to do with flows.
func (q *flowIndex) addFlow(j *job, s *eventlog.SubmittedJob) {
	if j.spec.IsFlow {
		f := openFlow(s)
		j.ownExtras().flow, q.flows[j.seq] = f, f
		j.isFlow = true
		if f.err == nil && f.plan.Reports.JobstateLog != "" && originOf(j, q.host) == "" {
			f.log = jobstate.New(f.plan.Reports.FirstSequence)
		}
	}
	if part, ok := FlowPartOfKey(j.texts.key()); ok {
		j.ownExtras().part = &part
	}
}

// removeFlow forgets a job that leaves the queue.
func (q *flowIndex) removeFlow(j *job) {
	if j.flow != nil {
		j.ownExtras().flow = nil
		delete(q.flows, j.seq)
	}
}

// savedFlow is how far the flow of a job has come; nil for a job that is none.
func savedFlow(j *job) *eventlog.FlowRecord {
	f := j.flow
	if f == nil || f.run == nil {
		return nil
	}
	r := &eventlog.FlowRecord{Run: f.run.Snapshot(), Jobs: make(map[uint32]uint64, len(f.jobs)), Failures: f.failures}
	for id, seq := range f.jobs {
		r.Jobs[uint32(id)] = seq
	}
	if f.log != nil {
		s := f.log.State()
		r.Jobstate = &s
	}
	return r
}

// flowChanges folds in what happens to flows.
type flowChanges struct{ *Queue }

// restore brings a restored flow to where it stood. It panics on a record that is not
// of its plan.
func (q flowChanges) restore(j *job, r *eventlog.FlowRecord) {
	f := j.flow
	if f == nil || f.run == nil || r == nil {
		return
	}
	run, err := flow.Restore(f.plan.Definition(), r.Run)
	if err != nil {
		panic(fmt.Sprintf("queue: flow %d: %v", j.seq, err))
	}
	f.run, f.failures, f.isOld = run, r.Failures, true
	for id, seq := range r.Jobs {
		f.jobs[graph.NodeID(id)] = seq
	}
	if f.log != nil && r.Jobstate != nil {
		f.log = jobstate.Restore(*r.Jobstate)
	}
	q.listFlow(j)
}

// apply folds in what has happened to a flow.
func (q flowChanges) apply(j *job, e eventlog.JobEvent) {
	f := j.flow
	if f == nil || f.run == nil {
		panic(fmt.Sprintf("queue: %v of job %d, which is no flow that can be read", e.Type, j.seq))
	}
	for _, step := range e.FlowEvents {
		switch s := step.(type) {
		case flow.PartBegun:
			if f.jobs[s.Node] = s.Job; s.Job == 0 {
				delete(f.jobs, s.Node)
			} else if of := q.jobs[s.Job]; of != nil {
				q.listPart(of) // after a restart it may have ended
			}
			if j.firstStarted == 0 {
				j.firstStarted = e.Time
			}
		case flow.PartEnded:
			if s.Code != 0 && len(f.failures) < maxFlowFailures {
				f.failures = append(f.failures, eventlog.FlowFailure{Node: uint32(s.Node), Job: f.jobs[s.Node],
					Reason: s.Reason})
			}
			delete(f.jobs, s.Node)
		}
		f.applyStep(step, e.Time, j.seq)
	}
	q.end(j, e.Time)
}

// end makes the task of a flow final whose run has ended.
func (q flowChanges) end(j *job, at int64) {
	f := j.flow
	if f.run.Phase() != flow.Ended || j.state[0].IsFinal() {
		return
	}
	status, code := f.run.Status()
	f.logEnd(at, status, code)
	r := j.records.MakeOwn(0)
	r.Ended, j.lastEnded = at, max(j.lastEnded, at)
	if status == flow.StatusRemoved && r.RemoveWanted {
		j.ownExtras().removedUnstarted = j.firstStarted == 0
		q.setTaskState(j, 0, roost.Removed)
		return
	}
	r.Exit = &eventlog.AttemptExit{Code: int32(code)}
	if code != 0 {
		r.Exit.Reason = f.outcome()
	}
	q.completeTask(j, 0, code != 0)
}

// remove has what runs of a flow removed, and its FINAL node run. It is false for a job
// that is none, and for one that is to go at once.
func (q flowChanges) remove(j *job, e eventlog.JobEvent) bool {
	f := j.flow
	if f == nil || f.run == nil || j.state[0].IsFinal() || e.Force && f.run.Phase() >= flow.Finishing {
		return false
	}
	r := j.records.MakeOwn(0)
	r.RemoveWanted, r.Reason, r.RequestedBy, r.HoldWanted, r.HoldReason = true, e.Reason, e.RequestedBy, false, ""
	if j.state[0] == roost.Held {
		q.setTaskState(j, 0, roost.Blocked)
	}
	f.run.Apply(flow.FlowRemoved{})
	q.end(j, e.Time)
	return true
}

// retry begins an ended flow again, with the nodes that are not done.
func (q flowChanges) retry(j *job) {
	if f := j.flow; f != nil && f.run != nil {
		f.run.Apply(flow.FlowRetried{})
		f.failures = nil
	}
}

// isWaitingFlow reports whether a flow waits for other jobs or its time, or is held.
func isWaitingFlow(j *job) bool { return j.state[0] != roost.Blocked || j.isWaiting() }

// checkFlows panics when a flow contradicts itself, or the jobs of its parts.
func (q *flowIndex) checkFlows() {
	for seq, j := range q.jobs {
		f := j.flow
		if f != q.flows[seq] || (f != nil) != j.spec.IsFlow {
			panic(fmt.Sprintf("queue: job %d is a flow: %v, and is listed: %v", seq, f != nil, q.flows[seq] != nil))
		}
		if f == nil || f.run == nil {
			continue
		}
		if err := f.run.Check(); err != nil {
			panic(fmt.Sprintf("queue: flow %d: %v", seq, err))
		}
		if ended := f.run.Phase() == flow.Ended; ended && !j.state[0].IsFinal() {
			panic(fmt.Sprintf("queue: flow %d has ended, and its task is %v", seq, j.state[0]))
		}
		for id, of := range f.jobs {
			part := (*FlowPart)(nil)
			if o := q.jobs[of]; o != nil {
				part = o.part
			}
			if part != nil && (part.Flow != seq || part.Node != id) || !f.run.State(id).IsActive() {
				panic(fmt.Sprintf("queue: node %d of flow %d has job %d, and is %v", id, seq, of, f.run.State(id)))
			}
		}
	}
	parts := map[FlowPart]uint64{}
	for seq, j := range q.jobs {
		if j.part == nil {
			continue
		}
		id := *j.part
		id.isListed = false
		if other := parts[id]; other != 0 {
			panic(fmt.Sprintf("queue: jobs %d and %d are both %s", seq, other, j.texts.key()))
		}
		parts[id] = seq
	}
}

// contents lists the digests of container images and packages of a flow's jobs, and
// the names of their scripts.
func (f *jobFlow) contents() (digests, scripts []string) {
	for i := range f.specs {
		digests = append(digests, f.specs[i].ContentDigests()...)
		if name := f.specs[i].ScriptFile; name != "" {
			scripts = append(scripts, name)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests), scripts
}
