package flow

import (
	"fmt"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// NodeState is the state of a node.
type NodeState uint8

// The states of a node, in the order of its life.
const (
	Waiting   NodeState = iota // for its parents
	PreReady                   // its PRE script is to begin
	PreRuns                    // its PRE script runs
	JobReady                   // its job is to be submitted
	JobRuns                    // its job is in the queue
	PostReady                  // its POST script is to begin
	PostRuns                   // its POST script runs
	Done
	Failed
	Futile // it cannot run: an ancestor has failed
	stateCount
)

var stateNames = [...]string{"waiting", "pre-ready", "pre", "job-ready", "job", "post-ready", "post", "done", "failed",
	"futile"}

// String is the word for the state.
func (s NodeState) String() string { return stateNames[s] }

// IsActive reports whether a part of the node runs.
func (s NodeState) IsActive() bool { return s == PreRuns || s == JobRuns || s == PostRuns }

// IsEnded reports whether nothing of the node will run, unless the flow is tried again.
func (s NodeState) IsEnded() bool { return s >= Done }

// isReady reports whether a part of the node may begin.
func (s NodeState) isReady() bool { return s == PreReady || s == JobReady || s == PostReady }

// nextStates are the states that can follow each one.
var nextStates = [stateCount][]NodeState{
	Waiting:   {PreReady, JobReady, PostReady, Done, Futile},
	PreReady:  {PreRuns, Waiting},
	PreRuns:   {PreReady, JobReady, PostReady, Done, Failed},
	JobReady:  {JobRuns, PostReady, Done, Waiting},
	JobRuns:   {PreReady, JobReady, PostReady, Done, Failed},
	PostReady: {PostRuns, Waiting},
	PostRuns:  {PreReady, JobReady, Done, Failed},
	Failed:    {Waiting},
	Futile:    {Waiting},
}

// moveNode changes the state of a node, and the counters with it.
func (r *Run) moveNode(id graph.NodeID, to NodeState) {
	from := r.states[id]
	legal := false
	for _, s := range nextStates[from] {
		legal = legal || s == to
	}
	if !legal {
		panic(fmt.Sprintf("flow: node %d (%s) goes from %v to %v", id, r.definition.Graph.Name(id), from, to))
	}
	r.states[id] = to
	if !r.isCounted(id) {
		return
	}
	r.counts[from]--
	r.counts[to]++
	if category := r.definition.Graph.Node(id).Category; from == JobRuns {
		r.categoryJobs[category]--
		r.unblockCategory(category)
	} else if to == JobRuns {
		r.categoryJobs[category]++
	}
}

// isCounted reports whether a node runs something and is one of the graph, not beside it.
func (r *Run) isCounted(id graph.NodeID) bool {
	return r.definition.Graph.Node(id).Kind < graph.JoinNode
}
