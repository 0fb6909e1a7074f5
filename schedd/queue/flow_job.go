package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
			if j.firstStarted == 0 {
				j.firstStarted = e.Time
			}
			f.applyStep(step, e.Time, j.seq)
			q.noteBegun(f, s)
			continue
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

// noteBegun notes the job of a part that has begun. Where a repair of the log has lost an
// event before it, the part has not begun for the flow, and begins again with that job.
func (q flowChanges) noteBegun(f *jobFlow, s flow.PartBegun) {
	if s.Job == 0 || !f.run.State(s.Node).IsActive() || f.run.Attempt(s.Node) != s.Attempt {
		return
	}
	f.jobs[s.Node] = s.Job
	if of := q.jobs[s.Job]; of != nil {
		q.listPart(of) // after a restart it may have ended
	}
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
		id.isListed, id.heldAt = false, 0
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

// applyStep folds a step into the flow, and adds to its jobstate log what that changed.
func (f *jobFlow) applyStep(step flow.FlowEvent, at int64, seq uint64) {
	if f.log == nil {
		f.run.Apply(step)
		return
	}
	seconds := at / int64(time.Second)
	f.log.Begin(seconds, f.run.Number(), seq)
	switch s := step.(type) {
	case flow.PartBegun:
		before := f.run.State(s.Node)
		if f.run.Apply(step); f.run.State(s.Node) != before {
			f.logBegun(seconds, s)
		}
	case flow.PartEnded:
		before, attempt := f.run.State(s.Node), f.run.Attempt(s.Node)
		f.run.Apply(step)
		if f.run.State(s.Node) != before || f.run.Attempt(s.Node) != attempt {
			f.logEnded(seconds, s)
		}
		if f.run.State(s.Node).IsEnded() || f.run.Attempt(s.Node) != attempt {
			f.log.EndAttempt(s.Node)
		}
	default:
		f.run.Apply(step)
	}
}

func (f *jobFlow) logNode(seconds int64, id graph.NodeID, event, detail string) {
	if !f.log.HasAttempt(id) {
		f.log.BeginAttempt(id)
	}
	f.log.Add(jobstate.NodeEvent{Seconds: seconds, Node: id, Name: f.plan.Graph.Name(id), Event: event, Detail: detail,
		Tag: f.jobTag(id)})
}

// jobTag is what a workflow engine calls the jobs of a node. It is the label
// pegasus_site, or that which the label job_tag_name names.
func (f *jobFlow) jobTag(id graph.NodeID) (tag string) {
	ad := f.parsed[f.plan.Graph.Node(id).Description]
	if ad == nil {
		return ""
	}
	labels, ok := ad.Sub(roost.AttrLabels)
	if !ok {
		return ""
	}
	name, ok := labels.Str("job_tag_name")
	if !ok {
		name = "pegasus_site"
	}
	tag, _ = labels.Str(strings.TrimPrefix(name, "+"))
	return tag
}

func (f *jobFlow) logBegun(seconds int64, s flow.PartBegun) {
	switch s.Part {
	case flow.PrePart:
		f.logNode(seconds, s.Node, "PRE_SCRIPT_STARTED", "")
	case flow.JobPart:
		for i := range f.plan.Template(s.Node).Count {
			if s.Job != 0 {
				f.logNode(seconds, s.Node, "SUBMIT", jobstate.TaskName(s.Job, i))
				f.log.SetJob(s.Node, s.Job)
			}
		}
	case flow.PostPart:
		f.logNode(seconds, s.Node, "POST_SCRIPT_STARTED", f.log.Job(s.Node))
	}
}

func (f *jobFlow) logEnded(seconds int64, s flow.PartEnded) {
	outcome := "_SUCCESS"
	if s.Code != 0 {
		outcome = "_FAILURE"
	}
	switch s.Part {
	case flow.PrePart:
		f.logNode(seconds, s.Node, "PRE_SCRIPT"+outcome, "")
	case flow.PostPart:
		f.logNode(seconds, s.Node, "POST_SCRIPT_TERMINATED", f.log.Job(s.Node))
		f.logNode(seconds, s.Node, "POST_SCRIPT"+outcome, f.log.Job(s.Node))
	case flow.JobPart:
		if s.Code == flow.SubmitFailed {
			f.logNode(seconds, s.Node, "SUBMIT_FAILURE", "")
			return
		}
		if f.plan.Graph.Node(s.Node).Flags&graph.NoopFlag != 0 {
			f.logNode(seconds, s.Node, "SUBMIT", "0.0")
			f.logNode(seconds, s.Node, "JOB_TERMINATED", "0.0")
		}
		f.logNode(seconds, s.Node, "JOB"+outcome, strconv.Itoa(s.Code))
	}
}

// removedCode is what DAGMan ends with that was removed.
const removedCode = 2

func (f *jobFlow) logEnd(at int64, status flow.FlowStatus, code int) {
	if f.log == nil {
		return
	}
	if status == flow.StatusRemoved {
		code = removedCode
	}
	f.log.End(at/int64(time.Second), code)
}

// logPartEvent adds to the jobstate log of a flow what has happened to the job of a node.
// Where a task was held the HOLD script of the node is due.
func logPartEvent(q *Queue, j *job, e *eventlog.JobEvent) {
	p := j.part
	if p == nil || p.Part != flow.JobPart {
		return
	}
	owner := q.jobs[p.Flow]
	if owner == nil || owner.flow == nil || owner.flow.run == nil || owner.flow.jobs[p.Node] != j.seq {
		return
	}
	f, seconds := owner.flow, e.Time/int64(time.Second)
	hasHold := f.plan.SettingsOf(p.Node).Hold != 0
	if f.log == nil && !hasHold {
		return
	}
	entry := UserLogEntry{Type: userLogType(e.Type)}
	entry.addEventTasks(j, e)
	for _, t := range entry.Tasks {
		id, event := jobstate.TaskName(j.seq, t.Index), jobstateEvent(entry.Type, t)
		if hasHold && event == heldEvent {
			p.heldAt = e.Time
			q.listPart(j)
		}
		if f.log == nil {
			continue
		}
		if t.Unstarted && t.State == roost.Completed {
			f.logNode(seconds, p.Node, "EXECUTE", id)
		}
		if event != "" {
			f.logNode(seconds, p.Node, event, id)
		}
	}
}

// heldEvent is the event of a task that is held.
const heldEvent = "JOB_HELD"

// jobstateEvent is the name of an event of a task in a jobstate log; empty: it has none.
func jobstateEvent(kind eventlog.EventType, t UserLogTask) string {
	switch kind {
	case eventlog.Started:
		return "EXECUTE"
	case eventlog.Held:
		return heldEvent
	case eventlog.Released:
		return "JOB_RELEASED"
	case eventlog.Suspended:
		return "JOB_SUSPENDED"
	case eventlog.Resumed:
		return "JOB_UNSUSPENDED"
	case eventlog.RemovalRequested:
		return "JOB_ABORTED"
	case eventlog.Ended:
		switch {
		case t.State == roost.Completed:
			return "JOB_TERMINATED"
		case t.State == roost.Removed:
			return "JOB_ABORTED"
		case t.State == roost.Held:
			return heldEvent
		case !t.Unstarted:
			return "JOB_EVICTED"
		}
	}
	return ""
}
