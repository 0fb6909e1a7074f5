package startd

import (
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// report is what the guard is told last, of what the startd did and what it runs.
type report struct {
	mu     sync.Mutex
	newest *wire.GuardReport
	news   chan struct{} // holds one token while it was not sent
}

func newReport() *report { return &report{news: make(chan struct{}, 1)} }

func (r *report) set(g *wire.GuardReport) {
	r.mu.Lock()
	r.newest = g
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *report) last() *wire.GuardReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest
}

// first is what a conversation begins with.
func (r *report) first(startd string) *wire.GuardReport {
	if g := r.last(); g != nil {
		return g
	}
	return &wire.GuardReport{Startd: startd}
}

// reportTo has the guard told what stands now.
func (l *loop) reportTo() {
	o, now := l.lent, time.Now()
	f := l.m.today.figures(now)
	g := &wire.GuardReport{
		Startd: l.m.own.Name, Acted: o.acted, NotLent: o.NotLent(), WorstFreeze: int64(f.Worst), Given: f.Given, Interruptions: f.Stopped,
	}
	for _, c := range l.core.All() {
		h := l.hands[c.ID]
		if h == nil || c.State != slot.Busy && c.State != slot.Vacating {
			continue
		}
		if dir := h.still.directory(); dir != "" && c.Running {
			g.TaskGroups = append(g.TaskGroups, dir)
		}
		g.Tenants = append(g.Tenants, l.tenant(c, h))
	}
	l.m.report.set(g)
}

func (l *loop) tenant(c *slot.Claim, h *hand) *wire.Tenant {
	t := &wire.Tenant{Task: c.Attempt.Task.String(), Owner: c.Owner, State: "running", Gpus: uint32(c.Resources.GPUs)}
	if a := h.present.Load(); a != nil && a.id == c.Attempt {
		t.Name = a.name
	}
	switch {
	case c.State == slot.Vacating:
		t.State = "leaving"
	case l.lent.Why(c.ID) != "":
		t.State = "suspended"
	}
	if c.Running {
		t.Since = time.Now().Add(c.Began - boottime()).UnixNano()
	}
	if m := l.m.meters.find(c.ID, c.Attempt); m != nil {
		m.mu.Lock()
		t.MilliCpu, t.Memory = int64(m.rate*1000), m.last.GetMemory()
		m.mu.Unlock()
	}
	return t
}
