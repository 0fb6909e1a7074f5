package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// flowIndex is which flows may have something to do, and which of their jobs have
// changed. Both are lists without doubles, in the order of the changes.
type flowIndex struct {
	*submissionIndex
	dueFlows     []uint64
	changedParts []uint64
	laterFlows   map[uint64]bool // flows that wait for room in the queue
}

// listFlow has a flow looked at.
func (q *flowIndex) listFlow(j *job) {
	if f := j.flow; f != nil && !f.isDue {
		f.isDue = true
		q.dueFlows = append(q.dueFlows, j.seq)
	}
}

// listPart has the flow of a job looked at, or of which it runs a part.
func (q *flowIndex) listPart(j *job) {
	q.listFlow(j)
	if p := j.part; p != nil && !p.isListed {
		p.isListed = true
		q.changedParts = append(q.changedParts, j.seq)
	}
}

// HasDueFlows reports whether AdvanceFlows may have something to decide.
func (q *flowIndex) HasDueFlows() bool {
	return len(q.dueFlows)+len(q.changedParts)+len(q.laterFlows) > 0
}

// AdvanceFlows decides one step of a flow: that a part has ended, begins, or is removed.
// It returns nothing when no flow has anything to do. Nothing begins without mayBegin.
func (q *flowIndex) AdvanceFlows(now time.Time, limits SubmitLimits, mayBegin bool) []eventlog.JobEvent {
	for len(q.changedParts) > 0 {
		j := q.jobs[q.changedParts[0]]
		if q.changedParts = q.changedParts[1:]; j == nil || j.part == nil {
			continue
		}
		j.part.isListed = false
		if mayBegin && j.part.heldAt > 0 {
			if events := q.holdScript(now, j, limits); len(events) > 0 {
				q.listPart(j)
				return events
			}
		}
		if events := q.endedPart(now, j, limits); len(events) > 0 {
			return events
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(q.laterFlows)) {
		if j := q.jobs[seq]; j == nil || j.flow == nil || j.flow.retryAt <= now.UnixNano() {
			delete(q.laterFlows, seq)
			if j != nil {
				q.listFlow(j)
			}
		}
	}
	for len(q.dueFlows) > 0 {
		j := q.jobs[q.dueFlows[0]]
		q.dueFlows = q.dueFlows[1:]
		if j == nil || j.flow == nil {
			continue
		}
		j.flow.isDue = false
		d := flowDecision{flowIndex: q, job: j, flow: j.flow, now: now, limits: limits, mayBegin: mayBegin}
		if events := d.decide(); len(events) > 0 {
			q.listFlow(j) // behind the others
			return events
		}
	}
	return nil
}

// endedPart decides that the part of a job has ended. Of one that goes on it counts the
// tasks that wait.
func (q *flowIndex) endedPart(now time.Time, j *job, limits SubmitLimits) []eventlog.JobEvent {
	p := j.part
	owner := q.jobs[p.Flow]
	if owner == nil || owner.flow == nil || owner.flow.run == nil {
		return nil
	}
	f := owner.flow
	switch {
	case f.jobs[p.Node] != j.seq || f.run.Number() != p.Run:
		return nil
	case !j.isFinal():
		if idle := int(j.counts[roost.Idle] + j.counts[roost.Blocked]); p.Part == flow.JobPart {
			f.run.Apply(flow.TasksMoved{Node: p.Node, Idle: idle})
			q.listFlow(owner)
		}
		return f.stopOthers(now, j)
	}
	code, reason := f.partResult(j)
	if again := f.deferredScript(p, code); again != nil {
		d := flowDecision{flowIndex: q, job: owner, flow: f, now: now, limits: limits, mayBegin: true}
		if events := d.submitPart(*again); len(events) > 0 {
			return events
		}
	}
	return []eventlog.JobEvent{flowEvent(now, owner, flow.PartEnded{Node: p.Node, Attempt: p.Attempt, Part: p.Part,
		Code: code, Reason: reason})}
}

// deferredScript is the part that runs a script again whose code asks for that; nil: its
// code counts.
func (f *jobFlow) deferredScript(p *FlowPart, code int) *FlowPart {
	if p.Part == flow.JobPart || f.run.Phase() >= flow.Stopping {
		return nil
	}
	s := f.plan.SettingsOf(p.Node)
	script := f.plan.Scripts[s.Pre]
	if p.Part == flow.PostPart {
		script = f.plan.Scripts[s.Post]
	}
	if !script.Defer.IsSet || script.Defer.Code != code {
		return nil
	}
	again := *p
	again.Again++
	again.isListed = false
	return &again
}

// stopOthers removes the other tasks of a node's job of which too many have failed, if
// the node says so.
func (f *jobFlow) stopOthers(now time.Time, j *job) []eventlog.JobEvent {
	s := f.plan.SettingsOf(j.part.Node)
	if !s.FailsFast || int(j.failed) <= s.Tolerated(len(j.state)) || j.part.Part != flow.JobPart {
		return nil
	}
	isRemoving := func(i int) bool {
		r := j.records.Own(i)
		return j.state[i].IsFinal() || r != nil && r.RemoveWanted
	}
	for i := range j.state {
		if !isRemoving(i) {
			return []eventlog.JobEvent{{Type: eventlog.RemovalRequested, Time: now.UnixNano(), Job: j.seq,
				Reason: fmt.Sprintf("%d of its tasks have failed, and its node tolerates %d", j.failed,
					s.Tolerated(len(j.state)))}}
		}
	}
	return nil
}

func flowEvent(now time.Time, j *job, steps ...flow.FlowEvent) eventlog.JobEvent {
	return eventlog.JobEvent{Type: eventlog.FlowAdvanced, Time: now.UnixNano(), Job: j.seq, FlowEvents: steps}
}

// flowDecision decides the next step of one flow.
type flowDecision struct {
	*flowIndex
	job      *job
	flow     *jobFlow
	now      time.Time
	limits   SubmitLimits
	mayBegin bool
}

// fullRetry is how long a flow waits that finds no room in the queue.
const fullRetry = time.Second

// decide returns the events of the next step.
func (d *flowDecision) decide() []eventlog.JobEvent {
	f := d.flow
	if f.run == nil || isWaitingFlow(d.job) {
		return nil
	}
	if f.isOld {
		f.isOld = false
		if events := d.lostParts(); len(events) > 0 {
			return events
		}
	}
	switch step := f.run.Next().(type) {
	case flow.PartStopped:
		events := []eventlog.JobEvent{flowEvent(d.now, d.job, step)}
		if j := d.jobs[f.jobs[step.Node]]; j != nil && !j.isFinal() {
			status, _ := f.run.Status()
			reason := "its flow ends"
			if status == flow.StatusRemoved {
				reason = "its flow was removed"
			}
			events = append([]eventlog.JobEvent{{Type: eventlog.RemovalRequested, Time: d.now.UnixNano(), Job: j.seq,
				Reason: reason}}, events...)
		}
		return events
	case flow.PartEnded: // of a node that runs nothing
		return []eventlog.JobEvent{flowEvent(d.now, d.job, step)}
	case flow.PartBegun:
		return d.submitPart(FlowPart{Flow: d.job.seq, Run: f.run.Number(), Node: step.Node, Attempt: step.Attempt,
			Part: step.Part})
	}
	f.waits = ""
	return nil
}

// lostParts ends the parts of a flow from the disk whose jobs have left the queue.
func (d *flowDecision) lostParts() []eventlog.JobEvent {
	var steps []flow.FlowEvent
	for _, id := range slices.Sorted(maps.Keys(d.flow.jobs)) {
		seq := d.flow.jobs[id]
		if d.jobs[seq] != nil {
			continue
		}
		e := flow.PartEnded{Node: id, Attempt: d.flow.run.Attempt(id), Part: partOf(d.flow.run.State(id)),
			Code: flow.JobRemoved, Reason: fmt.Sprintf("job %d is not known any more", seq)}
		if d.limits.PastJob != nil {
			if ok, succeeded, known := d.limits.PastJob(seq); known && ok && succeeded {
				e.Code, e.Reason = 0, ""
			} else if known {
				e.Code, e.Reason = 1, fmt.Sprintf("job %d has failed", seq)
			}
		}
		steps = append(steps, e)
	}
	if len(steps) == 0 {
		return nil
	}
	return []eventlog.JobEvent{flowEvent(d.now, d.job, steps...)}
}

// partOf is the part that runs in a state.
func partOf(s flow.NodeState) flow.NodePart {
	switch s {
	case flow.PreRuns:
		return flow.PrePart
	case flow.PostRuns:
		return flow.PostPart
	}
	return flow.JobPart
}

// submitPart makes the job of a part, unless there is one, and says that the part has
// begun. A job that can never be submitted has the part fail.
func (d *flowDecision) submitPart(p FlowPart) []eventlog.JobEvent {
	begun := flow.PartBegun{Node: p.Node, Attempt: p.Attempt, Part: p.Part}
	if ids := d.submissionJobs(p.key(), d.limits); len(ids) > 0 && !mutant.Active(mutant.FlowPartDoubled) {
		begun.Job = ids[0].Seq
		return []eventlog.JobEvent{flowEvent(d.now, d.job, begun)}
	}
	if !d.mayBegin {
		return d.wait("the disk of the queue is full")
	}
	j := d.job
	who := CallerIdentity{User: j.submission.owner, UID: j.submission.uid, GID: j.submission.gid,
		Origin: originOf(j, d.host)}
	spec := d.partSpec(p)
	if err := d.checkOpenLimit(who, spec.Count, d.limits); err != nil {
		return d.wait(err.Error())
	}
	seq := max(d.lastSeq, d.limits.LastSeq) + 1
	submitted, err := d.checkSubmission(d.now, who, &spec, &dependencyResolver{jobTable: d.jobTable, caller: who,
		jobNumber: seq, limits: d.limits})
	if err != nil {
		if errors.Is(err, roost.Unavailable) {
			return d.wait(err.Error())
		}
		return []eventlog.JobEvent{flowEvent(d.now, j, begun, flow.PartEnded{Node: p.Node, Attempt: p.Attempt,
			Part: p.Part, Code: flow.SubmitFailed, Reason: "its job could not be submitted: " + err.Error()})}
	}
	submitted.Submission.Key, submitted.Submission.PartCount = p.key(), 1
	begun.Job, d.flow.waits = seq, ""
	recorded := flowEvent(d.now, j, begun)
	if mutant.Active(mutant.FlowPartLost) { // in the wrong order
		return []eventlog.JobEvent{recorded, submitted}
	}
	return []eventlog.JobEvent{submitted, recorded}
}

// wait has the flow try again later.
func (d *flowDecision) wait(reason string) []eventlog.JobEvent {
	d.flow.waits, d.flow.retryAt = reason, d.now.Add(fullRetry).UnixNano()
	d.laterFlows[d.job.seq] = true
	return nil
}

// OrderFlow decides on a command to a flow.
func (q *flowIndex) OrderFlow(now time.Time, who CallerIdentity, t TaskSelector,
	step flow.FlowEvent) ([]eventlog.JobEvent, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return nil, fmt.Errorf("%v: %w: there is no such job", t, roost.NotFound)
	}
	if err := who.CheckOwner(t, j.submission.owner, j.submission.uid); err != nil {
		return nil, err
	}
	switch {
	case j.flow == nil:
		return nil, fmt.Errorf("%v: %w: it is no flow; roost flow submit makes flows", t, roost.Invalid)
	case j.flow.run == nil:
		return nil, fmt.Errorf("%v: %w: %w", t, roost.Conflict, j.flow.err)
	case j.isFinal():
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	}
	switch s := step.(type) {
	case flow.FlowHalted:
		if j.flow.run.IsHalted() == s.On {
			return nil, fmt.Errorf("%v: %w: it is %s already", t, roost.Conflict,
				map[bool]string{true: "halted", false: "not halted"}[s.On])
		}
	case flow.ProvisionerReady:
		if j.flow.run.Phase() != flow.Provisioning {
			return nil, fmt.Errorf("%v: %w: it does not wait for a PROVISIONER node: it is %v", t, roost.Conflict,
				j.flow.run.Phase())
		}
	}
	e := flowEvent(now, j, step)
	e.RequestedBy = who.requester(j.submission.owner, j.submission.uid)
	return []eventlog.JobEvent{e}, nil
}

// FlowLimits returns the limits of a flow, with those of all its categories, and the
// numbers of these by name. It is false for what is no flow.
func (q *flowIndex) FlowLimits(seq uint64) (l flow.Limits, categories map[string]int, ok bool) {
	j := q.jobs[seq]
	if j == nil || j.flow == nil || j.flow.run == nil {
		return l, nil, false
	}
	l, categories = j.flow.run.Limits(), map[string]int{}
	for i, c := range j.flow.plan.Categories[1:] {
		categories[c.Name] = i + 1
	}
	return l, categories, true
}
