package startd

import (
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// guardReport is what the guard is told last, of what the startd did and what it runs.
type guardReport struct {
	mu      sync.Mutex
	newest  *wire.GuardReport
	changed chan struct{} // holds one token while it was not sent
}

func newGuardReport() *guardReport { return &guardReport{changed: make(chan struct{}, 1)} }

func (r *guardReport) setReport(g *wire.GuardReport) {
	r.mu.Lock()
	r.newest = g
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *guardReport) newestReport() *wire.GuardReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest
}

// firstReport is what a conversation begins with.
func (r *guardReport) firstReport(startd string) *wire.GuardReport {
	if g := r.newestReport(); g != nil {
		return g
	}
	return &wire.GuardReport{Startd: startd}
}

// updateGuardReport has the guard told what stands now.
func (l *machineLoop) updateGuardReport() {
	o, now := l.ownerState, time.Now()
	f := l.host.stats.currentStats(now)
	g := &wire.GuardReport{
		Startd: l.host.config.Name, Acted: o.actedOn, NotLent: o.UnavailableReason(), WorstFreeze: int64(f.Worst),
		Given: f.Given, Interruptions: f.Stopped,
	}
	for _, r := range f.Recent {
		if r.At != 0 {
			g.Freezes = append(g.Freezes, &wire.OwnerFreeze{At: r.At, Took: int64(r.Took), Tasks: r.Tasks})
		}
	}
	for _, c := range l.table.Claims() {
		h := l.runners[c.ID]
		if h == nil || c.State != slot.Busy && c.State != slot.Vacating {
			continue
		}
		if dir := h.Suspension().FreezeDir(); dir != "" && c.Running {
			g.TaskGroups = append(g.TaskGroups, dir)
		}
		g.Tenants = append(g.Tenants, l.taskReport(c, h))
	}
	l.host.guardReport.setReport(g)
}

func (l *machineLoop) taskReport(c *slot.Claim, h *claim.Runner) *wire.Tenant {
	t := &wire.Tenant{Task: c.Attempt.Task.String(), Owner: c.Owner, State: "running", Gpus: uint32(c.Resources.GPUs)}
	if a := h.Attempt(); a != nil && a.ID() == c.Attempt {
		t.Name = a.JobName()
	}
	switch {
	case c.State == slot.Vacating:
		t.State = "leaving"
	case l.ownerState.SuspendReason(c.ID) != "":
		t.State = "suspended"
	}
	if c.Running {
		t.Since = time.Now().Add(c.RunningSince - boottime.Now()).UnixNano()
	}
	if cores, memory, ok := l.host.meters.CurrentUse(c.ID, c.Attempt); ok {
		t.MilliCpu, t.Memory = int64(cores*1000), int64(memory)
	}
	return t
}
