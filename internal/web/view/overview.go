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
	Queued  uint64    `json:"queued_tasks"`
	Running uint64    `json:"running_tasks"`

	Collector  DaemonState `json:"collector"`
	Negotiator DaemonState `json:"negotiator"`
	Problems   []string    `json:"problems,omitempty"`
}

// DaemonState is whether a daemon answers the schedd.
type DaemonState struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"` // its address, or why it does not answer
}

// ShowOverview shows the state of the pool.
func ShowOverview(c *route.Call) (any, error) {
	o := Overview{Version: document.Version}
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
	return o, err
}
