package owner

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// ownMachine converts what a guard says of its machine.
func ownMachine(c *frame.Invocation, m *wire.MineReply) document.OwnMachine {
	s, g := m.GetSigns(), donatedStatsOf(m)
	d := document.OwnMachine{
		Version: document.Version, State: machineState(c, s), Pause: pauseDocument(s.GetPause()), Busy: s.GetBusy(),
		Available: isAvailable(m),
		Idle:      idleSeconds(s.GetInput()), Policy: m.GetPolicy(), Unavailable: unavailableReason(m),
		ForeignCPUs: s.GetForeignCpu(), MemoryPressure: s.GetMemoryPressure(), OnBattery: s.GetOnBattery(),
		Hot: s.GetHot(), Game: s.GetGame(), Asleep: s.GetAsleep(),
		Today: document.DonatedStats{CoreHours: g.coreHours, Interruptions: g.interruptions,
			WorstFreeze: g.worstInterruption.Seconds()},
		Freezes: []document.OwnerFreeze{}, Tasks: []document.MachineTask{}, Sources: []document.SourceHealth{},
	}
	for _, p := range m.GetStartds() {
		for _, t := range p.GetTenants() {
			d.Tasks = append(d.Tasks, document.MachineTask{Task: t.GetTask(), Name: t.GetName(), Owner: t.GetOwner(),
				State: t.GetState(), CPUs: float64(t.GetMilliCpu()) / 1000, Memory: t.GetMemory(), GPUs: t.GetGpus(),
				Since: document.Timestamp(t.GetSince())})
		}
		for _, f := range p.GetFreezes() {
			d.Freezes = append(d.Freezes, document.OwnerFreeze{Time: document.Timestamp(f.GetAt()),
				Took: time.Duration(f.GetTook()).Seconds(), Tasks: f.GetTasks()})
		}
	}
	slices.SortStableFunc(d.Freezes, func(a, b document.OwnerFreeze) int { return cmp.Compare(b.Time, a.Time) })
	for _, x := range s.GetSources() {
		d.Sources = append(d.Sources, document.SourceHealth{Name: x.GetName(),
			Health: idle.SourceHealth(x.GetHealth()).String(), Text: x.GetText(), Hardware: x.GetHardware(),
			Idle: idleSeconds(x.GetLast())})
	}
	return d
}

// isAvailable reports whether any startd of the machine accepts tasks now.
func isAvailable(m *wire.MineReply) bool {
	return m.GetSigns().GetPause() == nil &&
		slices.ContainsFunc(m.GetStartds(), func(p *wire.GuardReport) bool { return p.GetNotLent() == "" })
}

// idleSeconds is how long an instant of CLOCK_BOOTTIME is past; nil: it never was.
func idleSeconds(at int64) *float64 {
	if at == 0 {
		return nil
	}
	s := sinceBootTime(at).Seconds()
	return &s
}
