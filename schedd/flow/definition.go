package flow

import "github.com/roost-batch/roost/schedd/flow/graph"

// Definition is what a flow is. It does not change while the flow runs.
type Definition struct {
	Graph      *graph.Graph
	Rules      []NodeRules // by Node.Settings
	Categories []int       // by Node.Category: the most jobs of it at a time; -1: any number
	// Tasks returns how many tasks the job of a node has; nil: one
	Tasks func(graph.NodeID) int

	Final, Provisioner       graph.NodeID // valid if the field below says so
	HasFinal, HasProvisioner bool
	DepthFirst               bool // of the nodes with one priority the deepest begins first
	AlwaysRunPost            bool // the POST script runs also if the PRE script has failed
	// once a node has failed no other begins, and what runs ends by itself
	StopsAtFailure bool
}

// NodeRules are the parts of a node, and what follows from their codes.
type NodeRules struct {
	HasPre, HasPost bool
	PreSkip         ExitRule // of the PRE script: the node is done without its job
	UnlessExit      ExitRule // the node is not tried again
	AbortOn         ExitRule // the flow is aborted
	AbortReturn     ExitRule // Code is what an aborted flow returns, in place of the node's
}

// ExitRule is a rule about one exit code.
type ExitRule struct {
	Code  int
	IsSet bool
}

func (e ExitRule) matches(code int) bool { return e.IsSet && e.Code == code }

// Limits bound what runs of a flow at a time; 0: no bound.
type Limits struct {
	Jobs      int // nodes whose job is in the queue
	IdleTasks int // no job is submitted while so many tasks of jobs wait
	Pre, Post int // scripts

	Categories []int // in the place of Definition.Categories; nil: those
}

// The codes of a part that did not end with an exit code. A signal is its negative
// number.
const (
	SubmitFailed = -1001 // its job could not be submitted
	JobRemoved   = -1002 // somebody else removed its job
	PreFailed    = -1004 // for the POST script, which runs nevertheless
)

// NodePart is a part of a node.
type NodePart uint8

// The parts of a node.
const (
	PrePart NodePart = iota
	JobPart
	PostPart
)

// String is the word for the part.
func (p NodePart) String() string { return [...]string{"pre", "job", "post"}[p] }

func (d *Definition) rules(n *graph.Node) NodeRules {
	if int(n.Settings) < len(d.Rules) {
		return d.Rules[n.Settings]
	}
	return NodeRules{}
}

func (d *Definition) tasks(id graph.NodeID) int {
	if d.Tasks == nil {
		return 1
	}
	return d.Tasks(id)
}
