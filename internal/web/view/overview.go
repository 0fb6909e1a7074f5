package view

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// Overview is the state of the pool in one view.
type Overview struct {
	Version int       `json:"v"`
	Node    string    `json:"node"`
	Program string    `json:"program"` // version of the schedd
	Started time.Time `json:"started"`
	// tasks of the schedd that answers
	Queued  uint64 `json:"queued_tasks"`
	Running uint64 `json:"running_tasks"`

	Nodes  map[string]int `json:"nodes"` // by state
	Cores  ResourceStates `json:"cores"`
	Memory ResourceStates `json:"memory_bytes"`
	GPUs   ResourceStates `json:"gpus"`

	Collector  DaemonState `json:"collector"`
	Negotiator DaemonState `json:"negotiator"`
	Problems   []string    `json:"problems,omitempty"`
}

// ResourceStates is how a resource of all nodes is divided.
type ResourceStates struct {
	Total   float64 `json:"total"`
	Held    float64 `json:"held"`    // in claims
	Free    float64 `json:"free"`    // for claims
	Owner   float64 `json:"owner"`   // not lent now by the owners of desktops
	Drained float64 `json:"drained"` // free, on nodes that get no new tasks
}

// add counts the amount of one node.
func (r *ResourceStates) add(n *document.Node, a document.ResourceAmount) {
	r.Total += a.Total
	r.Held += a.Total - a.Free
	switch {
	case n.Drain != "":
		r.Drained += a.Free
	case n.State == "owner":
		r.Owner += a.Free
	default:
		r.Free += a.Free
	}
}

// DaemonState is whether a daemon answers the schedd.
type DaemonState struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"` // its address, or why it does not answer
}

// Overview returns the view of the state of the pool.
func (p *Pool) Overview(c *route.Call) (any, error) {
	o := Overview{Version: document.Version, Nodes: map[string]int{}}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		h, err := s.Health(ctx, &wire.HealthRequest{})
		if err != nil {
			return err
		}
		o.Node, o.Program, o.Started = h.GetName(), h.GetVersion(), document.TimeOfNanos(h.GetStarted()).UTC()
		o.Queued, o.Running, o.Problems = h.GetQueuedTasks(), h.GetRunningTasks(), h.GetProblems()
		o.Collector = DaemonState{h.GetCollectorOk(), h.GetCollector()}
		o.Negotiator = DaemonState{h.GetNegotiatorOk(), h.GetNegotiator()}
		return nil
	})
	if err != nil {
		return nil, err
	}
	pool, err := p.snapshot(c)
	if err != nil {
		o.Problems = append(o.Problems, "the nodes are not shown: "+err.Error())
		return o, nil
	}
	c.AsOf = pool.at
	for i := range pool.nodes {
		n := &pool.nodes[i]
		o.Nodes[n.State]++
		o.Cores.add(n, n.Cpus)
		o.Memory.add(n, n.Memory)
		o.GPUs.add(n, n.GPUs)
	}
	return o, nil
}
