package document

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// FlowProgress is how a flow goes.
type FlowProgress struct {
	Phase    string            `json:"phase"`
	Halted   bool              `json:"halted,omitempty"`
	Number   uint32            `json:"number"` // how often it was begun
	Nodes    uint32            `json:"nodes"`
	States   map[string]uint32 `json:"states"` // nodes by state
	Failures []FlowFailure     `json:"failures,omitempty"`
}

// FlowFailure is why a node of a flow failed.
type FlowFailure struct {
	Node   string `json:"node"`
	Job    string `json:"job,omitempty"`
	Reason string `json:"reason"`
}

// FlowNode is a node of a flow.
type FlowNode struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // the command of DAG files that defines such nodes
	State    string   `json:"state"`
	Attempt  uint32   `json:"attempt"` // how often it was tried again
	Retries  uint32   `json:"retries"` // how often it may be
	Job      string   `json:"job,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Children []string `json:"children"` // those over weak arcs begin with "~"
}

// FlowNodes is a flow with nodes of it.
type FlowNodes struct {
	Version int        `json:"v"`
	Job     Job        `json:"job"`
	Nodes   []FlowNode `json:"nodes"`         // in the order of the flow
	Cut     bool       `json:"cut,omitempty"` // there are further nodes

	States []string `json:"-"` // that were asked for
}

// FlowStates returns the states that nodes can have, from the first to the last.
func FlowStates() []string {
	return []string{"waiting", "pre-ready", "pre", "job-ready", "job", "post-ready", "post", "done", "failed", "futile"}
}

// FlowProgressOf returns the document of how a flow goes; nil of a job that is none.
func FlowProgressOf(f *scheddapi.FlowProgress) *FlowProgress {
	if f == nil {
		return nil
	}
	p := &FlowProgress{Phase: f.GetPhase(), Halted: f.GetHalted(), Number: f.GetNumber(), Nodes: f.GetNodes(),
		States: f.GetStates()}
	if p.States == nil {
		p.States = map[string]uint32{}
	}
	for _, x := range f.GetFailures() {
		p.Failures = append(p.Failures, FlowFailure{x.GetNode(), x.GetJob(), x.GetReason()})
	}
	return p
}

// FlowNodeOf returns the document of a node.
func FlowNodeOf(n *scheddapi.FlowNode) FlowNode {
	return FlowNode{Name: n.GetName(), Kind: n.GetKind(), State: n.GetState(), Attempt: n.GetAttempt(),
		Retries: n.GetRetries(), Job: n.GetJob(), Reason: n.GetReason(),
		Children: append([]string{}, n.GetChildren()...)}
}

// The conditions of arcs between nodes, as depends_on has them.
const (
	strongArc = "afterok"
	weakArc   = "afterany"
)

// Graph returns the nodes and their arcs as a graph, in columns. The ids are the names.
func (f *FlowNodes) Graph() JobGraph {
	g := JobGraph{Version: f.Version, Job: f.Job}
	known := map[string]bool{}
	for _, n := range f.Nodes {
		known[n.Name] = true
		g.Jobs = append(g.Jobs, GraphJob{ID: n.Name, Name: n.Name, State: n.State})
	}
	for _, n := range f.Nodes {
		for _, child := range n.Children {
			name, isWeak := strings.CutPrefix(child, "~")
			d := JobDependency{From: n.Name, To: name, Type: strongArc}
			if isWeak {
				d.Type = weakArc
			}
			if known[name] && !slices.Contains(g.Dependencies, d) {
				g.Dependencies = append(g.Dependencies, d)
			}
		}
	}
	g.Arrange()
	return g
}
