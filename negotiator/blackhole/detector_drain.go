package blackhole

import (
	"maps"
	"slices"
	"time"
)

// AutomaticDrain is a machine to drain automatically.
type AutomaticDrain struct {
	Machine string
	Until   time.Time
	Reason  string
}

// PoolCounts describes the pool, as far as the decisions depend on it.
type PoolCounts struct {
	Machines    int
	Drained     int // machines drained by administrators
	SubmitNodes int // connected submit nodes
	// IsPilotOf reports whether a machine is a pilot, and runs tasks of that submitter
	// alone; nil: there are none.
	IsPilotOf func(machine string, who NodeSubmitter) bool
}

// DetectBlackHoles returns the machines that must be drained from now on. It also returns
// which machines must be avoided, and by which submitters.
func (b *Detector) DetectBlackHoles(now time.Time,
	pool PoolCounts) (drains []AutomaticDrain, avoid []MachineAvoidance) {
	b.dropExpired(now)
	bySelf := 0
	for name := range b.drainedOrOnTrial {
		b.pendingMachines[name] = true
		m := b.machines[name]
		if m.state == drained && !now.Before(m.drainedUntil) {
			m.state, m.onTrial = onTrial, outcomeCounts{}
		}
		if m.state == onTrial && m.onTrial.succeeded >= TrialSuccesses {
			m.state, m.lastDrainDuration = trusted, 0
			delete(b.drainedOrOnTrial, name)
		}
		if m.state == drained && !m.isPilot {
			bySelf++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.pendingMachines)) {
		m := b.machines[name]
		if m != nil && m.state != drained {
			if e := b.evidenceOfOwner(now, name, m, pool); e != nil {
				delete(b.pendingMachines, name)
				drains = append(drains, b.drain(now, name, m, e))
				m.isPilot = true
				continue
			}
		}
		if m != nil && m.state != drained &&
			(bySelf >= max(1, pool.Machines/DrainFraction) || pool.Machines-pool.Drained-bySelf < 2) {
			continue // checked again when others are trusted again
		}
		if delete(b.pendingMachines, name); m == nil || m.state == drained {
			continue
		}
		against := b.collectEvidence(now, m)
		if !against.justifiesDrain(m.state == onTrial, min(2, pool.SubmitNodes)) {
			if n := m.quickFailures(); n >= MinFailures || n >= maxEventsPerJob && pool.isPilot(name, m) {
				b.pendingMachines[name] = true // the outcomes of the same jobs elsewhere may come later
			}
			avoid = append(avoid, b.findAvoidances(now, name, against, pool)...)
			continue
		}
		bySelf++
		drains = append(drains, b.drain(now, name, m, against))
	}
	return drains, avoid
}

// drain drains a machine, each time for twice as long.
func (b *Detector) drain(now time.Time, name string, m *machineRecord, against *machineEvidence) AutomaticDrain {
	m.lastDrainDuration = min(max(2*m.lastDrainDuration, MinDrainDuration), MaxDrainDuration)
	m.state, m.drainedUntil, m.reason = drained, now.Add(m.lastDrainDuration), against.text()
	b.drainedOrOnTrial[name] = true
	b.dropOldest(m, 0, len(m.events))
	return AutomaticDrain{name, m.drainedUntil, m.reason}
}

// isPilot reports whether a machine is a pilot of one whose tasks have ended there.
func (c *PoolCounts) isPilot(name string, m *machineRecord) bool {
	return c.IsPilotOf != nil && slices.ContainsFunc(m.events, func(e outcomeEvent) bool {
		return c.IsPilotOf(name, e.NodeSubmitter)
	})
}

// evidenceOfOwner returns the evidence of a pilot's owner against it, if it is enough.
// Nobody else has tasks there, and what others say of it does not count. So one owner is
// enough, and one job: of that all that is stored must count.
func (b *Detector) evidenceOfOwner(now time.Time, name string, m *machineRecord, pool PoolCounts) *machineEvidence {
	if pool.IsPilotOf == nil || m.quickFailures() < maxEventsPerJob {
		return nil
	}
	all := b.collectEvidence(now, m)
	for _, who := range slices.SortedFunc(maps.Keys(all.bySubmitter), NodeSubmitter.compare) {
		e := all.bySubmitter[who]
		if who.Owner != "" && pool.IsPilotOf(name, who) && e.countedFailures >= maxEventsPerJob &&
			e.countedFailures >= 4*e.outcomesHere.succeeded && !e.failuresAreCommon {
			return e
		}
	}
	return nil
}

// HasPending reports whether recent outcomes may lead to a decision.
func (b *Detector) HasPending() bool { return len(b.pendingMachines) > 0 }

func (m *machineRecord) quickFailures() (n int) {
	for i := range m.events {
		if m.events[i].failedQuickly() {
			n++
		}
	}
	return n
}

// DrainedMachines lists the automatically drained machines by name.
func (b *Detector) DrainedMachines(now time.Time) (list []AutomaticDrain) {
	for _, name := range slices.Sorted(maps.Keys(b.drainedOrOnTrial)) {
		if m := b.machines[name]; m.state == drained && now.Before(m.drainedUntil) {
			list = append(list, AutomaticDrain{name, m.drainedUntil, m.reason})
		}
	}
	return list
}

// MachinesOnTrial lists the machines on trial by name.
func (b *Detector) MachinesOnTrial(now time.Time) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(b.drainedOrOnTrial)) {
		if m := b.machines[name]; m.state == onTrial || m.state == drained && !now.Before(m.drainedUntil) {
			names = append(names, name)
		}
	}
	return names
}

// ClearMachine drops all evidence against a machine.
func (b *Detector) ClearMachine(name string) {
	for key := range b.avoided {
		if key.machine == name {
			delete(b.avoided, key)
		}
	}
	if m := b.machines[name]; m != nil {
		b.dropOldest(m, 0, len(m.events))
		delete(b.machines, name)
		delete(b.drainedOrOnTrial, name)
	}
}

// NextDrainEnd returns when the next drain ends; zero for never.
func (b *Detector) NextDrainEnd() (at time.Time) {
	for name := range b.drainedOrOnTrial {
		if m := b.machines[name]; m.state == drained && (at.IsZero() || m.drainedUntil.Before(at)) {
			at = m.drainedUntil
		}
	}
	return at
}

// AddKnownDrain adds a drain of an earlier leader.
func (b *Detector) AddKnownDrain(d AutomaticDrain) {
	b.initMaps()
	if b.machines[d.Machine] == nil {
		b.drainedOrOnTrial[d.Machine] = true
		b.machines[d.Machine] = &machineRecord{state: drained, drainedUntil: d.Until, reason: d.Reason,
			lastDrainDuration: MinDrainDuration}
	}
}
