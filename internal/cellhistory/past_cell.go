package cellhistory

import (
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// PastCell is what a cell was like at a checkpoint, as roost-json(7) describes it.
type PastCell struct {
	Version int       `json:"v"`
	At      time.Time `json:"at"`
	Leader  string    `json:"leader"`
	Program string    `json:"program"` // version of Roost that wrote the checkpoint

	Nodes  []document.Node    `json:"nodes"`
	Shares ledger.ShareReport `json:"shares"`
	// requests of which tasks waited, the oldest first
	Waiting []PastRequest `json:"waiting"`
	// requests of which tasks waited that are not in the list
	MoreWaiting   int      `json:"more_waiting,omitempty"`
	SilentSchedds []string `json:"silent_schedds,omitempty"` // whose jobs are not known
}

// PastRequest is the tasks of one schedd that asked for the same and waited.
type PastRequest struct {
	Schedd  string     `json:"schedd"`
	Request uint64     `json:"request"`
	Jobs    []string   `json:"jobs"` // at most 10
	Owner   string     `json:"owner"`
	Group   string     `json:"group,omitempty"`
	Band    string     `json:"band"`
	Queue   string     `json:"queue,omitempty"`
	Tasks   int        `json:"tasks"`
	Since   *time.Time `json:"since,omitempty"`
	// why they did not start then; empty: the leader would have started them
	Why    string   `json:"why,omitempty"`
	Advice []string `json:"advice,omitempty"`
}

// NodeOf returns what the ad of a machine said, without what says whether a person was at
// it.
func NodeOf(n document.Node, isDesktop bool) document.Node {
	if n.Desktop = isDesktop; isDesktop {
		n.Load = 0
		if n.Owner != "" {
			n.Owner = "its owner did not lend it then"
		}
	}
	return n
}

// Cores sums up the cores of all nodes.
func (p *PastCell) Cores() (sum document.ResourceAmount) {
	for i := range p.Nodes {
		sum.Free += p.Nodes[i].Cpus.Free
		sum.Total += p.Nodes[i].Cpus.Total
	}
	return sum
}

// GPUs sums up the GPUs of all nodes.
func (p *PastCell) GPUs() (sum document.ResourceAmount) {
	for i := range p.Nodes {
		sum.Free += p.Nodes[i].GPUs.Free
		sum.Total += p.Nodes[i].GPUs.Total
	}
	return sum
}

// States counts the nodes by state.
func (p *PastCell) States() map[string]int {
	all := map[string]int{}
	for i := range p.Nodes {
		all[p.Nodes[i].State]++
	}
	return all
}

// WaitingTasks is how many tasks waited that are in the list.
func (p *PastCell) WaitingTasks() (sum int) {
	for i := range p.Waiting {
		sum += p.Waiting[i].Tasks
	}
	return sum
}

// Drained is the state of a node that got no new tasks.
const Drained = "drained"
