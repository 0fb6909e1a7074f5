package startd

import (
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// report is what the guard is told last, of what the startd did and what it runs.
type report struct {
	mu      sync.Mutex
	newest  *wire.GuardReport
	news    chan struct{} // holds one token while it was not sent
	given   float64       // core seconds since midnight
	day     int           // of the year, of that midnight
	stopped uint32        // tasks, since then
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

// gave counts processor time that tasks had, in core seconds, and interrupted how often a task was stopped for the owner.
func (r *report) gave(now time.Time, seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.today(now)
	r.given += max(seconds, 0)
}

func (r *report) interrupted(now time.Time, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.today(now)
	r.stopped += uint32(n)
}

// today begins to count anew at midnight.
func (r *report) today(now time.Time) {
	if day := now.YearDay(); day != r.day {
		r.day, r.given, r.stopped = day, 0, 0
	}
}

func (r *report) counts(now time.Time) (given float64, stopped uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.today(now)
	return r.given, r.stopped
}

// reportTo has the guard told what stands now.
func (l *loop) reportTo() {
	o, now := l.lent, time.Now()
	g := &wire.GuardReport{Startd: l.m.own.Name, Acted: o.acted, WorstFreeze: int64(o.worst), NotLent: o.why}
	g.Given, g.Interruptions = l.m.report.counts(now)
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
	case l.lent.still[c.ID] != "":
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
