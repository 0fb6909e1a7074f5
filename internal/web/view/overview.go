package view

import (
	"context"
	"fmt"
	"slices"
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
	// tasks of all schedds that answer
	Queued  uint64 `json:"queued_tasks"`
	Running uint64 `json:"running_tasks"`
	// how many schedds these are, and those that do not answer
	Schedds int      `json:"schedds"`
	Silent  []string `json:"silent_schedds,omitempty"`

	// ready tasks of those schedds by the reason that excludes most machines, the most
	// frequent first
	Waiting []WaitReason `json:"waiting"`
	Oldest  []OldestWait `json:"oldest_waiting"` // one of each band

	Nodes  map[string]int `json:"nodes"` // by state
	Cores  ResourceStates `json:"cores"`
	Memory ResourceStates `json:"memory_bytes"`
	GPUs   ResourceStates `json:"gpus"`

	Collector  DaemonState `json:"collector"`
	Negotiator DaemonState `json:"negotiator"`
	Problems   []string    `json:"problems,omitempty"`
}

// WaitReason is how many tasks wait for one kind of reason.
type WaitReason struct {
	Reason string `json:"reason"` // "busy", "limit", …; "unexplained": nobody knows yet
	Tasks  uint64 `json:"tasks"`
}

// OldestWait is the job of a band that has waited longest for machines.
type OldestWait struct {
	Band  string    `json:"band"`
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// ResourceStates is how a resource of all nodes is divided.
type ResourceStates struct {
	Total   float64 `json:"total"`
	Held    float64 `json:"held"`    // in claims
	Free    float64 `json:"free"`    // for claims
	Owner   float64 `json:"owner"`   // not lent now by the owners of desktops
	Drained float64 `json:"drained"` // free, on nodes that get no new tasks
	// of what is held: tasks have requested it and do not use it, and others may have it
	Reclaimed float64 `json:"reclaimed"`
	// of nodes that are gone since at most a day, and not in the total
	Down float64 `json:"down"`
}

// InUse is what is held and not on offer to others.
func (r ResourceStates) InUse() float64 { return max(r.Held-r.Reclaimed, 0) }

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
	o := Overview{Version: document.Version, Nodes: map[string]int{}, Waiting: []WaitReason{},
		Oldest: []OldestWait{}}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		h, err := s.Health(ctx, &wire.HealthRequest{Waiting: true, PoolWaits: true})
		if err != nil {
			return err
		}
		o.Node, o.Program, o.Started = h.GetName(), h.GetVersion(), document.TimeOfNanos(h.GetStarted()).UTC()
		o.Problems = fewProblems(h.GetProblems())
		o.addWaits(h)
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
		o.Cores.add(&n.Node, n.Cpus)
		o.Memory.add(&n.Node, n.Memory)
		o.GPUs.add(&n.Node, n.GPUs)
		o.Cores.Reclaimed += n.reclaimedCPUs
		o.Memory.Reclaimed += n.reclaimedMemory
	}
	for i := range pool.down {
		n := &pool.down[i]
		o.Nodes[n.State]++
		o.Cores.Down += n.Cpus.Total
		o.Memory.Down += n.Memory.Total
		o.GPUs.Down += n.GPUs.Total
	}
	return o, nil
}

// addWaits adds what the tasks of all schedds wait for. A schedd of an older version
// knows its own only.
func (o *Overview) addWaits(h *wire.HealthReply) {
	waits, schedds := h.GetPoolWaits(), int(h.GetPoolSchedds())
	if waits == nil {
		waits, schedds = &wire.WaitSummary{Waiting: h.GetWaiting(), Oldest: h.GetOldest(),
			QueuedTasks: h.GetQueuedTasks(), RunningTasks: h.GetRunningTasks()}, 1
	}
	o.Queued, o.Running, o.Schedds = waits.GetQueuedTasks(), waits.GetRunningTasks(), schedds
	o.Silent = fewProblems(h.GetSilentSchedds())
	for _, w := range waits.GetWaiting() {
		o.Waiting = append(o.Waiting, WaitReason{w.GetReason(), w.GetTasks()})
	}
	for _, w := range waits.GetOldest() {
		o.Oldest = append(o.Oldest, OldestWait{w.GetBand(), w.GetId(), time.Unix(0, w.GetSince()).UTC()})
	}
}

// maxProblems bounds the problems of a schedd that are shown. Of a large pool that is
// down each node is one.
const maxProblems = 20

// fewProblems returns the first problems, and how many more there are.
func fewProblems(all []string) []string {
	if len(all) <= maxProblems {
		return all
	}
	return append(slices.Clone(all[:maxProblems]), fmt.Sprintf("and %d more", len(all)-maxProblems))
}
