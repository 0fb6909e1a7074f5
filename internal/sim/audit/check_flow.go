package audit

import (
	"time"

	"github.com/roost-batch/roost"
)

// FlowGuarantee is F1 to F9 of flows.
const FlowGuarantee = NewestNameGuarantee + 1

// FlowTerms is what the submission of a flow says.
type FlowTerms struct {
	Nodes   []FlowNode
	MaxJobs int // jobs of nodes in the queue at a time; 0: any number
}

// FlowNode is a node of a flow. Its parents come before it.
type FlowNode struct {
	Parents  []int
	IsWeak   bool // the arcs from its parents
	Retries  int
	Failures int // so many attempts fail
	IsNoop   bool
	IsFinal  bool
}

// nodeOutcome is how far a node has come.
type nodeOutcome uint8

const (
	nodeWaits nodeOutcome = iota
	nodeRuns
	nodeDone
	nodeFailed
)

// auditedFlow is the auditor's state of a flow.
type auditedFlow struct {
	*FlowTerms
	jobs      map[flowPart]roost.JobID
	outcomes  []nodeOutcome
	attempts  []roost.AttemptNumber
	running   int
	ended     bool
	judged    bool          // its outcome
	code      int32         // with which it has ended
	disturbed bool          // a user has asked for something, or a repair has changed it
	changed   time.Duration // when something happened last
}

// flowPart is an attempt of a node.
type flowPart struct {
	node    int
	attempt roost.AttemptNumber
}

// checkPartStored checks F1 when the job of a part is on disk: it is the only one.
func (a *Auditor) checkPartStored(s *Event) {
	by := a.jobs[s.Of]
	if by == nil || by.flow == nil {
		a.addViolation(FlowGuarantee, jobHistory(s.Of, s.Job), "%v is a part of %v, which is no flow", s.Job, s.Of)
		return
	}
	if a.jobs[s.Job] == nil {
		a.jobs[s.Job] = &auditedJob{id: s.Job, key: s.Key, resources: s.Resources,
			tasks: make([]auditedTask, max(s.Tasks, 1)), shown: true, isRun: true}
	}
	p := flowPart{s.Index, s.Attempt}
	if first, ok := by.flow.jobs[p]; ok && first != s.Job {
		a.addViolation(FlowGuarantee, flowHistory(s.Of), "%v and %v are both attempt %d of node %d of %v", first, s.Job,
			s.Attempt, s.Index, s.Of)
	}
	by.flow.jobs[p], by.flow.changed = s.Job, s.At
}

// checkPartBegun checks F1 to F6 when a part is recorded to have begun.
func (a *Auditor) checkPartBegun(s *Event) {
	j := a.jobs[s.Job]
	if j == nil || j.flow == nil {
		return
	}
	f := j.flow
	f.changed = s.At
	fail := func(text string, args ...any) {
		a.addViolation(FlowGuarantee, flowHistory(s.Job), "node %d of %v begins attempt %d "+text,
			append([]any{s.Index, s.Job, s.Attempt}, args...)...)
	}
	if s.Of.Seq != 0 && a.jobs[s.Of] == nil {
		fail("with %v, which is not in the log", s.Of)
	}
	if f.disturbed && f.jobs[flowPart{s.Index, s.Attempt}] == s.Of {
		// a repair has lost that it had begun, or what came after: the job is the same
		if f.outcomes[s.Index] != nodeRuns {
			f.running++
		}
		f.outcomes[s.Index], f.attempts[s.Index] = nodeRuns, s.Attempt
		return
	}
	switch f.outcomes[s.Index] {
	case nodeDone, nodeFailed:
		fail("although it has ended")
	case nodeRuns:
		if s.Attempt <= f.attempts[s.Index] {
			fail("again")
		}
	}
	n := &f.Nodes[s.Index]
	if int(s.Attempt) > n.Retries {
		fail("and may be tried again %d times", n.Retries)
	}
	if f.running++; f.MaxJobs > 0 && f.running > f.MaxJobs && !n.IsFinal {
		fail("as number %d of at most %d", f.running, f.MaxJobs)
	}
	for _, parent := range n.Parents {
		if o := f.outcomes[parent]; o != nodeDone && !(n.IsWeak && o == nodeFailed) {
			fail("before node %d is done", parent)
		}
	}
	if n.IsFinal && f.running > 1 {
		fail("while %d other nodes run", f.running-1)
	}
	f.outcomes[s.Index], f.attempts[s.Index] = nodeRuns, s.Attempt
}

// checkPartEnded follows the end of a part.
func (a *Auditor) checkPartEnded(s *Event) {
	j := a.jobs[s.Job]
	if j == nil || j.flow == nil {
		return
	}
	f, n := j.flow, &j.flow.Nodes[s.Index]
	f.changed = s.At
	if f.outcomes[s.Index] == nodeRuns && f.running > 0 {
		f.running--
	} else if !n.IsNoop && !f.disturbed { // else a repair may have lost the end
		a.addViolation(FlowGuarantee, flowHistory(s.Job), "attempt %d of node %d of %v has ended, which did not run",
			s.Attempt, s.Index, s.Job)
	}
	switch {
	case s.Code == 0:
		f.outcomes[s.Index] = nodeDone
	case int(s.Attempt) < n.Retries && !f.disturbed:
		f.outcomes[s.Index] = nodeWaits
	default:
		if f.outcomes[s.Index] = nodeFailed; f.disturbed && int(s.Attempt) < n.Retries {
			f.outcomes[s.Index] = nodeWaits
		}
	}
}

// noteFlowEnded notes the end of a flow. The state of the queue is ahead of its events:
// ends of parts may still be reported.
func (a *Auditor) noteFlowEnded(s *Event) {
	if j := a.jobs[s.Job]; j != nil && j.flow != nil {
		j.flow.ended, j.flow.code, j.flow.changed = true, s.Code, s.At
		j.tasks[0].completed = 1
	}
}

// checkOutcome checks F7: a flow ends as it does without faults.
func (a *Auditor) checkOutcome(id roost.JobID, f *auditedFlow) {
	if f.running > 0 {
		a.addViolation(FlowGuarantee, flowHistory(id), "%v has ended, and %d of its nodes run", id, f.running)
	}
	if f.disturbed {
		return
	}
	failed := false
	want := f.naiveOutcomes()
	for i, o := range f.outcomes {
		failed = failed || want[i] != nodeDone
		if o != want[i] {
			a.addViolation(FlowGuarantee, flowHistory(id), "%v has ended with node %d in state %d, and %d is due", id,
				i, o, want[i])
		}
	}
	if last := len(f.Nodes) - 1; f.Nodes[last].IsFinal { // it decides
		failed = want[last] != nodeDone
	}
	if failed != (f.code != 0) {
		a.addViolation(FlowGuarantee, flowHistory(id), "%v has ended with code %d, and its nodes failed: %v",
			id, f.code, failed)
	}
}

// naiveOutcomes runs the flow in order.
func (f *auditedFlow) naiveOutcomes() []nodeOutcome {
	list := make([]nodeOutcome, len(f.Nodes))
	for i, n := range f.Nodes {
		runs := true
		for _, parent := range n.Parents {
			runs = runs && (list[parent] == nodeDone || n.IsWeak && list[parent] == nodeFailed)
		}
		switch {
		case !runs:
		case n.IsNoop || n.Failures <= n.Retries:
			list[i] = nodeDone
		default:
			list[i] = nodeFailed
		}
	}
	return list
}

// disturbFlow is that a flow may end otherwise from now on.
func (j *auditedJob) disturbFlow() {
	if j.flow != nil {
		j.flow.disturbed = true
	}
}

// checkFlows checks F7, and F9 when no fault is in the way. F9 says that a flow goes on
// when nothing of it runs.
func (a *Auditor) checkFlows(at time.Duration) {
	for _, j := range a.sortedJobs() {
		f := j.flow
		if f != nil && f.ended && !f.judged && at > f.changed {
			f.judged = true
			a.checkOutcome(j.id, f)
		}
		if f == nil || f.ended || f.running > 0 || !j.shown || j.tasks[0].held || !j.tasks[0].isUnfinished() ||
			f.changed == noDeadline {
			continue
		}
		if at-max(f.changed, a.faultsEnded) > a.rules.StartWait {
			a.addViolation(FlowGuarantee, flowHistory(j.id), "nothing of %v runs since %s, and it has not ended", j.id,
				ClockText(f.changed))
			f.changed = noDeadline
		}
	}
}

// flowHistory selects the events about a flow, and about its parts as a whole.
func flowHistory(id roost.JobID) func(*Event) bool {
	return func(s *Event) bool { return s.Job == id && s.Type != Recovered || s.Of == id }
}
