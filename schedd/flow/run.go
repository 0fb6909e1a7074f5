package flow

import (
	"slices"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// FlowPhase is how far a flow is.
type FlowPhase uint8

// The phases of a flow, in their order.
const (
	Provisioning FlowPhase = iota // its PROVISIONER node is not ready yet
	Executing                     // its nodes run
	Stopping                      // it is aborted or removed, or stops at a failure: nothing begins
	Finishing                     // its FINAL node runs
	Cleaning                      // the nodes beside it are removed
	Ended
)

// String is the word for the phase.
func (p FlowPhase) String() string {
	return [...]string{"provisioning", "executing", "stopping", "finishing", "cleaning", "ended"}[p]
}

// FlowStatus is how a flow goes, or went. The numbers are those of DAGMan's DAG_STATUS.
type FlowStatus int

// The statuses of a flow.
const (
	StatusOK         FlowStatus = 0
	StatusError      FlowStatus = 1
	StatusNodeFailed FlowStatus = 2
	StatusAborted    FlowStatus = 3
	StatusRemoved    FlowStatus = 4
)

// Run is a flow that runs. It changes only in Apply.
type Run struct {
	definition *Definition
	limits     Limits

	phase    FlowPhase
	halted   bool
	status   FlowStatus
	returned int // what an aborted flow returns
	number   int // of times that it was begun, from 1

	states   []NodeState
	waits    []uint32 // parents that a node waits for
	attempts []uint16 // how often a node has begun in this run
	left     []uint16 // how often it may be tried again
	results  map[graph.NodeID]partResult

	counts       [stateCount]int // of nodes of the graph
	categoryJobs map[uint16]int  // jobs in the queue, by category
	idleTasks    int             // tasks of jobs that wait
	jobIdle      map[graph.NodeID]int
	active       map[graph.NodeID]bool  // nodes with a part that runs; true: its removal has begun
	running      [PostPart + 1]int      // parts that run of nodes of the graph
	beside       []graph.NodeID         // nodes beside the graph
	stops        []graph.NodeID         // nodes of which what runs is to be removed
	finalAgain   bool                   // the FINAL node is removed, and begins again
	stack        []graph.NodeID         // of nodes whose children are looked at
	aside        map[uint16]*readyQueue // nodes that wait for a category
	preQueue     readyQueue             // PRE scripts
	jobQueue     readyQueue             // jobs
	postQueue    readyQueue             // POST scripts
	sequence     uint32
}

// partResult is what the parts of a node have ended with in its attempt. POST scripts
// are given it.
type partResult struct{ pre, job int }

// New returns a flow of which nothing has begun.
func New(d *Definition, limits Limits) *Run {
	r := newRun(d, limits)
	r.begin()
	return r
}

// newRun returns a flow whose nodes all wait.
func newRun(d *Definition, limits Limits) *Run {
	n := d.Graph.Len()
	r := &Run{
		definition: d, limits: limits, phase: Executing,
		states: make([]NodeState, n), waits: make([]uint32, n), attempts: make([]uint16, n), left: make([]uint16, n),
		results: map[graph.NodeID]partResult{}, categoryJobs: map[uint16]int{}, jobIdle: map[graph.NodeID]int{},
		active: map[graph.NodeID]bool{}, aside: map[uint16]*readyQueue{},
	}
	for id, node := range d.Graph.Nodes() {
		if r.isCounted(id) {
			r.counts[Waiting]++
		} else if node.Kind != graph.JoinNode {
			r.beside = append(r.beside, id)
		}
	}
	return r
}

// begin begins the flow, or begins it again after some nodes were set back to Waiting.
func (r *Run) begin() {
	d := r.definition
	r.number++
	r.phase, r.status, r.returned = Executing, StatusOK, 0
	if d.HasProvisioner {
		r.phase = Provisioning
	}
	for id, n := range d.Graph.Nodes() {
		r.waits[id], r.left[id] = n.Parents, n.Retry
		if n.Flags&graph.DoneFlag != 0 && r.states[id] == Waiting && r.isCounted(id) {
			r.moveNode(id, Done)
		}
	}
	for id, n := range d.Graph.Nodes() {
		if r.states[id] == Done && n.Kind.HasArcs() {
			for _, a := range d.Graph.Children(id) {
				r.waits[a.Child()]--
			}
		}
	}
	for id, n := range d.Graph.Nodes() {
		switch {
		case n.Kind.HasArcs():
			if r.states[id] == Waiting && r.waits[id] == 0 {
				r.becomeReady(id)
			}
		case n.Kind == graph.ServiceNode || n.Kind == graph.ProvisionerNode:
			r.beginNode(id)
		}
	}
	r.proceed()
}

// Phase returns how far the flow is.
func (r *Run) Phase() FlowPhase { return r.phase }

// Status returns how the flow goes, or how it went, and its exit code. The code is 0 for
// a success.
func (r *Run) Status() (s FlowStatus, code int) {
	switch {
	case r.status == StatusOK:
		return StatusOK, 0
	case r.status == StatusAborted:
		return StatusAborted, r.returned
	}
	return r.status, 1
}

// IsHalted reports whether no more parts begin but POST scripts.
func (r *Run) IsHalted() bool { return r.halted }

// Number returns how often the flow was begun, from 1.
func (r *Run) Number() int { return r.number }

// Limits returns the limits, with those of all categories.
func (r *Run) Limits() Limits {
	l := r.limits
	if l.Categories == nil {
		l.Categories = r.definition.Categories
	}
	l.Categories = slices.Clone(l.Categories)
	return l
}

// State returns the state of a node.
func (r *Run) State(id graph.NodeID) NodeState { return r.states[id] }

// Attempt returns how often a node has been tried again in this run: the value of the
// macro RETRY.
func (r *Run) Attempt(id graph.NodeID) int { return int(r.attempts[id]) }

// States returns a copy of the states of all nodes.
func (r *Run) States() []NodeState { return slices.Clone(r.states) }

// Attempts returns a copy of how often each node has been tried again in this run.
func (r *Run) Attempts() []uint16 { return slices.Clone(r.attempts) }

// Counts returns how many nodes of the graph are in each state.
func (r *Run) Counts() [stateCount]int { return r.counts }

// beginNode makes the first part of a node ready.
func (r *Run) beginNode(id graph.NodeID) {
	to := JobReady
	if r.definition.rules(r.definition.Graph.Node(id)).HasPre {
		to = PreReady
	}
	r.moveReady(id, to)
}

// moveReady makes a part of a node ready.
func (r *Run) moveReady(id graph.NodeID, to NodeState) {
	r.moveNode(id, to)
	if r.isCounted(id) {
		r.addReady(id)
	}
}

// becomeReady is for a node that waits for no more parents.
func (r *Run) becomeReady(id graph.NodeID) {
	if r.definition.Graph.Node(id).Kind != graph.JoinNode {
		r.beginNode(id)
		return
	}
	r.states[id] = Done
	r.releaseChildren(id, true)
}

// releaseChildren is for a node that was executed: its children wait for it no more. With
// done it has succeeded; otherwise its children over strong arcs are futile.
func (r *Run) releaseChildren(id graph.NodeID, done bool) {
	base := len(r.stack)
	release := func(id graph.NodeID, done bool) {
		for _, a := range r.definition.Graph.Children(id) {
			child := a.Child()
			switch {
			case r.states[child] != Waiting:
			case !done && !a.IsWeak():
				r.becomeFutile(child)
			default:
				if r.waits[child]--; r.waits[child] == 0 {
					if r.definition.Graph.Node(child).Kind == graph.JoinNode {
						r.states[child] = Done
						r.stack = append(r.stack, child)
					} else {
						r.beginNode(child)
					}
				}
			}
		}
	}
	release(id, done)
	for len(r.stack) > base {
		next := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		release(next, true)
	}
}

// becomeFutile marks a node that cannot run, and all that wait for it. A node over a weak
// arc waits for it too: it is never executed. Each arc is looked at once.
func (r *Run) becomeFutile(id graph.NodeID) {
	base := len(r.stack)
	mark := func(id graph.NodeID) {
		if r.states[id] == Waiting {
			r.moveNode(id, Futile)
			r.stack = append(r.stack, id)
		}
	}
	mark(id)
	for len(r.stack) > base {
		next := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		for _, a := range r.definition.Graph.Children(next) {
			mark(a.Child())
		}
	}
}
