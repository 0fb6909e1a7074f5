package startd

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// boundCores are those that the claim's tasks are bound to: of the units that it has
// processor time of. Where one unit has all cores, none, unless whole cores are pinned.
func (l *machineLoop) boundCores(c *slot.Claim) []int {
	switch {
	case !c.HasResources():
		return nil
	case c.Info.WholeCores && c.Inside == 0:
		return wholeCores(l, c)
	}
	cores := unitCores(l, c)
	if c.Info.OneNUMANode && c.Inside == 0 {
		cores = nodeCores(l, c, cores)
	}
	return withoutWholeCores(l, c, cores)
}

// unitCores are the cores that the resource units of a claim give it; nil: all.
func unitCores(l *machineLoop, c *slot.Claim) []int {
	if l.host.config.Pin {
		return l.pinCores(c)
	}
	f, with := l.table.Free(), 0
	for i := range f.Len() {
		if len(f.Unit(i).Cores) > 0 {
			with++
		}
	}
	if with < 2 {
		return nil
	}
	var all []int
	for _, part := range c.Placement.Parts {
		if part.CPU > 0 || len(c.Placement.Parts) == 1 {
			all = append(all, f.Unit(part.Unit).Cores...)
		}
	}
	slices.Sort(all)
	return all
}

// pinCores finds cores for a claim of whole cores, on which no claim of its class is
// pinned. The claim has them for as long as it holds its resources. A part of a core, or
// more cores than the machine really has, is not pinned: such a task runs where there is
// time.
func (l *machineLoop) pinCores(c *slot.Claim) []int {
	if own, ok := l.pinned[c.ID]; ok {
		return own
	}
	if len(c.Placement.Parts) != 1 || c.Resources.CPU%1000 != 0 || c.Resources.CPU == 0 {
		return nil
	}
	taken := make(map[int]bool)
	for id, cores := range l.pinned {
		other, ok := l.table.Claim(id)
		if !ok || !other.HasResources() {
			delete(l.pinned, id)
			continue
		}
		for _, core := range cores {
			taken[core] = taken[core] || other.Class == c.Class
		}
	}
	var own []int
	for _, core := range l.table.Free().Unit(c.Placement.Parts[0].Unit).Cores {
		if !taken[core] && len(own) < int(c.Resources.CPU/1000) {
			own = append(own, core)
		}
	}
	if len(own) < int(c.Resources.CPU/1000) {
		own = nil
	}
	l.pinned[c.ID] = own
	return own
}

// requestResize has the claim of a running attempt become larger or smaller. A task that
// is pinned to cores keeps them, and as many. If its schedd sends an ad, the machine has
// to satisfy the Requirements in it.
func requestResize(l *machineLoop, s *scheddSession, m *wire.Resize) {
	a, to := m.GetAttempt().AttemptID(s.schedd), m.GetResources().Vector()
	c, ok := l.table.Find(a)
	if ok && c.Schedd == s.schedd && to.CPU != c.Resources.CPU && len(l.pinned[c.ID]) > 0 {
		performResize(l, slot.ReportResized{Claim: c, Attempt: a, To: to, Refusal: roost.Conflict.Error() +
			": its processes are pinned to cores, which stay as many"})
		return
	}
	if ok && c.Schedd == s.schedd && m.GetAd() != "" {
		ad, err := classad.Parse(m.GetAd())
		if err == nil {
			env := &classad.EvalEnv{Now: time.Now(), Steps: maxMatchSteps}
			err = slot.ResizesOf(l.table).CheckRequirements(c, ad, env)
		}
		if err != nil {
			performResize(l, slot.ReportResized{Claim: c, Attempt: a, To: to, Refusal: err.Error()})
			return
		}
	}
	slot.ResizesOf(l.table).Request(boottime.Now(), s.schedd, a, to)
}

// performResize does one effect of a resize.
func performResize(l *machineLoop, effect slot.Effect) {
	switch e := effect.(type) {
	case slot.ResizeClaim:
		resizeClaim(l, e)
	case slot.ReportResized:
		l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Resized{Resized: &wire.Resized{
			Attempt: wire.FromAttempt(e.Attempt), Resources: wire.FromResources(e.To), Reason: e.Refusal,
			ReadsAd: true,
		}}})
	}
}

// resizeClaim has the runner of a claim change its limits.
func resizeClaim(l *machineLoop, e slot.ResizeClaim) {
	if l.runners[e.Claim.ID] == nil {
		slot.ResizesOf(l.table).Done(boottime.Now(), e.Claim.ID, "nothing runs on it any more")
		return
	}
	cmd := claim.ResizeCmd{ID: e.Attempt, Held: e.Held, To: e.To}
	if saved := l.savedPlacement(e.Claim); saved != nil {
		cmd.Saved, cmd.SavedAfter = *saved, saved.Resized(e.To)
	}
	l.sendCommand(e.Claim, cmd)
}
