package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
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

// writesFiles reports whether files show how a flow goes, and are written on this host.
func writesFiles(q *Queue, j *job) bool {
	return j != nil && j.flow != nil && j.flow.run != nil && !j.flow.plan.Reports.IsEmpty() && originOf(j, q.host) == ""
}

// FlowsWithFiles lists the flows of which files show how they go.
func FlowsWithFiles(q *Queue) (list []uint64) {
	for _, seq := range slices.Sorted(maps.Keys(q.flows)) {
		if writesFiles(q, q.jobs[seq]) {
			list = append(list, seq)
		}
	}
	return list
}

// ChangedFlow returns the flow whose files show otherwise after an event. It is false
// where there is none.
func ChangedFlow(q *Queue, e *eventlog.JobEvent) (seq uint64, ok bool) {
	j := q.jobs[e.Job]
	if j != nil && j.part != nil {
		j = q.jobs[j.part.Flow]
	}
	if !writesFiles(q, j) {
		return 0, false
	}
	return j.seq, true
}

// FlowCapture is how a flow stands at one time. Nothing of it changes any more.
type FlowCapture struct {
	Seq      uint64
	UID, GID uint32
	Time     time.Time
	Plan     *plan.Plan
	Phase    flow.FlowPhase
	Status   flow.FlowStatus
	Held     bool
	States   []flow.NodeState // by node
	Attempts []uint16
	Tasks    map[graph.NodeID]NodeTasks
	Reasons  map[graph.NodeID]string // why nodes failed, of the first ones
}

// NodeTasks counts the tasks of a node's job.
type NodeTasks struct{ Queued, Held, Idle int }

// CaptureFlow returns how a flow stands; nil: there is none, or no file shows it.
func CaptureFlow(q *Queue, seq uint64, now time.Time) *FlowCapture {
	j := q.jobs[seq]
	if !writesFiles(q, j) {
		return nil
	}
	f := j.flow
	c := &FlowCapture{Seq: seq, UID: j.submission.uid, GID: j.submission.gid, Time: now, Plan: f.plan,
		Phase: f.run.Phase(), Held: j.state[0] == roost.Held, States: f.run.States(), Attempts: f.run.Attempts(),
		Tasks: map[graph.NodeID]NodeTasks{}, Reasons: map[graph.NodeID]string{}}
	c.Status, _ = f.run.Status()
	for id, of := range f.jobs {
		if part := q.jobs[of]; part != nil && f.run.State(id) == flow.JobRuns {
			n := NodeTasks{Held: int(part.counts[roost.Held]),
				Idle: int(part.counts[roost.Idle] + part.counts[roost.Blocked])}
			n.Queued = len(part.state) - int(part.counts[roost.Completed]+part.counts[roost.Removed])
			c.Tasks[id] = n
		}
	}
	for _, x := range f.failures {
		c.Reasons[graph.NodeID(x.Node)] = x.Reason
	}
	return c
}

// EndedFlow is CaptureFlow for a flow that has ended; nil for others.
func EndedFlow(q *Queue, seq uint64, now time.Time) *FlowCapture {
	if j := q.jobs[seq]; j == nil || !j.isFinal() {
		return nil
	}
	return CaptureFlow(q, seq, now)
}

// SavePointsOf returns the save points that are to be written after an event, which has
// just been applied. Base is the whole name of the file.
func SavePointsOf(q *Queue, e *eventlog.JobEvent) (list []FlowRescue) {
	if e.Type != eventlog.FlowAdvanced {
		return nil
	}
	j := q.jobs[e.Job]
	if j == nil || j.flow == nil || j.flow.run == nil || originOf(j, q.host) != "" {
		return nil
	}
	f := j.flow
	for _, step := range e.FlowEvents {
		s, ok := step.(flow.PartBegun)
		if !ok || s.Attempt > 0 || s.Part != f.firstPart(s.Node) {
			continue
		}
		if file := f.plan.SavePoint(s.Node); file != "" {
			list = append(list, FlowRescue{file, j.submission.uid, j.submission.gid, f.doneText("Save point DAG file, "+
				"created when node "+f.plan.Graph.Name(s.Node)+" began", e.Time, f.run.DoneNodes())})
		}
	}
	return list
}

// firstPart is the part with which a node begins.
func (f *jobFlow) firstPart(id graph.NodeID) flow.NodePart {
	if f.plan.SettingsOf(id).Pre != 0 {
		return flow.PrePart
	}
	return flow.JobPart
}

// doneText is a file in the form of a rescue file.
func (f *jobFlow) doneText(title string, at int64, done []graph.NodeID) string {
	var b strings.Builder
	counts := f.run.Counts()
	fmt.Fprintf(&b, "# %s\n#   the %s DAG file\n# Created %s\n# Rescue DAG version: 2.0.1 (partial)\n#\n"+
		"# Nodes premarked DONE: %d\n# Nodes that failed: %d\n\n", title, strings.Join(f.plan.Files, " "),
		time.Unix(0, at).UTC().Format("1/2/2006 15:04:05 UTC"), len(done), counts[flow.Failed])
	for _, id := range done {
		b.WriteString("DONE ")
		b.Write(f.plan.Graph.NameBytes(id))
		b.WriteByte('\n')
	}
	return b.String()
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
	return FlowRescue{j.flow.plan.RescueBase, j.submission.uid, j.submission.gid,
		j.flow.doneText("Rescue DAG file, created after running", e.Time, j.flow.run.RescueNodes())}, true
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
