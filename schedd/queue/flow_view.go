package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/jobstate"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// FlowStatus is how a flow stands.
type FlowStatus struct {
	Phase      flow.FlowPhase
	Halted     bool
	Status     flow.FlowStatus
	Number     int            // how often it was begun
	States     map[string]int // nodes by state
	Nodes      int
	Limits     flow.Limits // with those of all categories
	Categories []string    // their names, by number
	Failures   []FlowFailure
}

// FlowFailure is why a node of a flow failed.
type FlowFailure struct {
	Node   string
	Job    roost.JobID // zero: it had none
	Reason string
}

// FlowNode is a node of a flow.
type FlowNode struct {
	Name, Kind string
	State      flow.NodeState
	Attempt    int
	Retries    int
	Job        roost.JobID // of the part that runs; zero: none does
	Reason     string      // why it failed
	Children   []string    // those over weak arcs begin with "~"
}

// flowStatus tells how a flow stands; nil for a job that is none.
func (q statusView) flowStatus(j *job) *FlowStatus {
	f := j.flow
	if f == nil || f.run == nil {
		return nil
	}
	s := &FlowStatus{Phase: f.run.Phase(), Halted: f.run.IsHalted(), Number: f.run.Number(), Limits: f.run.Limits(),
		States: map[string]int{}}
	s.Status, _ = f.run.Status()
	for state, n := range f.run.Counts() {
		if n > 0 {
			s.States[flow.NodeState(state).String()] = n
			s.Nodes += n
		}
	}
	for _, c := range f.plan.Categories {
		s.Categories = append(s.Categories, c.Name)
	}
	for _, x := range f.failures {
		s.Failures = append(s.Failures, q.flowFailure(f, x))
	}
	return s
}

func (q statusView) flowFailure(f *jobFlow, x eventlog.FlowFailure) FlowFailure {
	one := FlowFailure{Node: f.plan.Graph.Name(graph.NodeID(x.Node)), Reason: x.Reason}
	if x.Job != 0 {
		one.Job = roost.JobID{Seq: x.Job, Host: q.host}
	}
	return one
}

// FlowNodes calls yield with nodes of a flow from a number on, until it returns false. It
// returns where to go on, and an error where there is no such flow.
func (q statusView) FlowNodes(seq uint64, first graph.NodeID, yield func(FlowNode) bool) (next graph.NodeID, more bool,
	err error) {
	j := q.jobs[seq]
	switch {
	case j == nil:
		return 0, false, fmt.Errorf("job %d: %w: there is no such job in the queue", seq, roost.NotFound)
	case j.flow == nil:
		return 0, false, fmt.Errorf("job %d: %w: it is no flow; roost flow submit makes flows", seq, roost.Invalid)
	case j.flow.run == nil:
		return 0, false, fmt.Errorf("job %d: %w: %w", seq, roost.Conflict, j.flow.err)
	}
	f, g := j.flow, j.flow.plan.Graph
	reasons := map[graph.NodeID]string{}
	for _, x := range f.failures {
		reasons[graph.NodeID(x.Node)] = x.Reason
	}
	for id := first; int(id) < g.Len(); id++ {
		n := g.Node(id)
		if n.Kind == graph.JoinNode {
			continue
		}
		one := FlowNode{Name: g.Name(id), Kind: n.Kind.String(), State: f.run.State(id), Attempt: f.run.Attempt(id),
			Retries: int(n.Retry), Reason: reasons[id]}
		if of := f.jobs[id]; of != 0 {
			one.Job = roost.JobID{Seq: of, Host: q.host}
		}
		one.Children = childNames(g, id, "", nil)
		if !yield(one) {
			return id + 1, true, nil
		}
	}
	return 0, false, nil
}

// childNames appends the names of the children of a node, with those behind join nodes.
func childNames(g *graph.Graph, id graph.NodeID, mark string, names []string) []string {
	for _, a := range g.Children(id) {
		weak := mark
		if a.IsWeak() {
			weak = "~"
		}
		if g.Node(a.Child()).Kind == graph.JoinNode {
			names = childNames(g, a.Child(), weak, names)
		} else {
			names = append(names, weak+g.Name(a.Child()))
		}
	}
	return names
}

// describe says in words what has happened. It reads nothing that changes.
func (f *jobFlow) describe(step flow.FlowEvent) string {
	name := func(id graph.NodeID) string {
		if int(id) < f.plan.Graph.Len() {
			return "node " + f.plan.Graph.Name(id)
		}
		return fmt.Sprintf("node number %d", id)
	}
	part := func(p flow.NodePart) string { return [...]string{"PRE script", "job", "POST script"}[p] }
	switch s := step.(type) {
	case flow.PartBegun:
		text := name(s.Node) + ": " + part(s.Part)
		if s.Job != 0 {
			text += fmt.Sprintf(" is job %d", s.Job)
		}
		if s.Attempt > 0 {
			text += fmt.Sprintf(", attempt %d", s.Attempt+1)
		}
		return text
	case flow.PartEnded:
		if s.Code == 0 {
			return name(s.Node) + ": " + part(s.Part) + " done"
		}
		return fmt.Sprintf("%s: %s failed with %d: %s", name(s.Node), part(s.Part), s.Code, s.Reason)
	case flow.PartStopped:
		return name(s.Node) + " is removed"
	case flow.ProvisionerReady:
		return "the PROVISIONER node is ready"
	case flow.FlowHalted:
		if s.On {
			return "halted"
		}
		return "goes on"
	case flow.LimitsChanged:
		return fmt.Sprintf("its limits are %d jobs, %d idle tasks, %d PRE and %d POST scripts", s.Limits.Jobs,
			s.Limits.IdleTasks, s.Limits.Pre, s.Limits.Post)
	}
	return ""
}

// reason says in a line how a flow goes, or why it does not.
func (f *jobFlow) reason() string {
	switch {
	case f.err != nil:
		return "its plan cannot be read here: " + f.err.Error()
	case f.waits != "":
		return "its next node waits: " + f.waits
	}
	counts, total := f.run.Counts(), 0
	for _, n := range counts {
		total += n
	}
	parts := []string{fmt.Sprintf("%d of %d nodes done", counts[flow.Done], total)}
	for _, part := range []struct {
		text string
		n    int
	}{{"run", counts[flow.JobRuns] + counts[flow.PreRuns] + counts[flow.PostRuns]}, {"failed", counts[flow.Failed]},
		{"cannot run", counts[flow.Futile]}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	text := strings.Join(parts, ", ")
	if f.run.IsHalted() {
		text += "; halted: roost flow resume lets it go on"
	}
	if phase := f.run.Phase(); phase != flow.Executing {
		text += "; " + phase.String()
	}
	return text
}

// FlowRescue is a rescue file that is to be written.
type FlowRescue struct {
	Base     string // its name without .rescueNNN
	UID, GID uint32
	Text     string
}

// FlowRescueOf returns the rescue file of a flow that has ended by an event, which has
// just been applied. It is false if there is none to be written here.
func FlowRescueOf(q *Queue, e *eventlog.JobEvent) (r FlowRescue, ok bool) {
	j := q.jobs[e.Job]
	if e.Type != eventlog.FlowAdvanced && e.Type != eventlog.RemovalRequested || j == nil || j.flow == nil ||
		j.flow.run == nil || j.flow.plan.RescueBase == "" || !j.isFinal() || originOf(j, q.host) != "" {
		return r, false
	}
	status, _ := j.flow.run.Status()
	if status == flow.StatusOK {
		return r, false
	}
	var b strings.Builder
	counts := j.flow.run.Counts()
	done := j.flow.run.RescueNodes()
	fmt.Fprintf(&b, "# Rescue DAG file, created after running\n#   the %s DAG file\n# Created %s\n"+
		"# Rescue DAG version: 2.0.1 (partial)\n#\n# Nodes premarked DONE: %d\n# Nodes that failed: %d\n\n",
		j.flow.plan.RescueBase, time.Unix(0, e.Time).UTC().Format("1/2/2006 15:04:05 UTC"), len(done),
		counts[flow.Failed])
	for _, id := range done {
		b.WriteString("DONE ")
		b.Write(j.flow.plan.Graph.NameBytes(id))
		b.WriteByte('\n')
	}
	return FlowRescue{j.flow.plan.RescueBase, j.submission.uid, j.submission.gid, b.String()}, true
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

// jobTag is what a workflow engine calls the jobs of a node.
func (f *jobFlow) jobTag(id graph.NodeID) (tag string) {
	ad := f.parsed[f.plan.Graph.Node(id).Description]
	if ad == nil {
		return ""
	}
	name, ok := ad.Str("job_tag_name")
	if !ok {
		name = "pegasus_site"
	}
	tag, _ = ad.Str(strings.TrimPrefix(name, "+"))
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
func logPartEvent(q *Queue, j *job, e *eventlog.JobEvent) {
	p := j.part
	if p == nil || p.Part != flow.JobPart {
		return
	}
	owner := q.jobs[p.Flow]
	if owner == nil || owner.flow == nil || owner.flow.log == nil || owner.flow.jobs[p.Node] != j.seq {
		return
	}
	f, seconds := owner.flow, e.Time/int64(time.Second)
	entry := UserLogEntry{Type: userLogType(e.Type)}
	entry.addEventTasks(j, e)
	for _, t := range entry.Tasks {
		id := jobstate.TaskName(j.seq, t.Index)
		if t.Unstarted && t.State == roost.Completed {
			f.logNode(seconds, p.Node, "EXECUTE", id)
		}
		if event := jobstateEvent(entry.Type, t); event != "" {
			f.logNode(seconds, p.Node, event, id)
		}
	}
}

// jobstateEvent is the name of an event of a task in a jobstate log; empty: it has none.
func jobstateEvent(kind eventlog.EventType, t UserLogTask) string {
	switch kind {
	case eventlog.Started:
		return "EXECUTE"
	case eventlog.Held:
		return "JOB_HELD"
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
			return "JOB_HELD"
		case !t.Unstarted:
			return "JOB_EVICTED"
		}
	}
	return ""
}

// JobstateOf returns the new lines of the jobstate log of the flow of an event that has
// just been applied. It is false where there are none.
func JobstateOf(q *Queue, e *eventlog.JobEvent) (entry UserLogEntry, ok bool) {
	j := q.jobs[e.Job]
	if j != nil && j.part != nil {
		j = q.jobs[j.part.Flow]
	}
	return jobstateEntry(q, j)
}

func jobstateEntry(q *Queue, j *job) (entry UserLogEntry, ok bool) {
	if j == nil || j.flow == nil || j.flow.log == nil {
		return entry, false
	}
	entry = UserLogEntry{Path: j.flow.plan.Reports.JobstateLog, UID: j.submission.uid, GID: j.submission.gid,
		Job: j.id(q.host), Lines: j.flow.log.Take()}
	return entry, len(entry.Lines) > 0
}

// NoteJobstateWritten says that some more lines of the jobstate log of a flow, the oldest
// ones, are in the file.
func NoteJobstateWritten(q *Queue, seq uint64, lines int) {
	if j := q.jobs[seq]; j != nil && j.flow != nil && j.flow.log != nil {
		j.flow.log.Written(lines)
	}
}

// JobstateEntries returns the lines of the jobstate logs of all flows after a restart.
// Some of them may be in the files.
func JobstateEntries(q *Queue) (list []UserLogEntry) {
	for _, seq := range slices.Sorted(maps.Keys(q.flows)) {
		if entry, ok := jobstateEntry(q, q.jobs[seq]); ok {
			list = append(list, entry)
		}
	}
	return list
}
