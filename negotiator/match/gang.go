package match

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A gang is a number of units of a request that start together, on one machine or on
// several, or not at all. Its units are placed one after another like any others. If one
// of them finds no machine, all resources taken for the gang are given back. Half a gang
// could not work, and two halves of two gangs would wait for each other for ever.

// gangUndo is the state before something was placed for a gang.
type gangUndo struct {
	grants           int
	vacatingMachines int
	poolFree         roost.Resources
	submitterUsage   float64 // cores that its submitter uses
	groupUsage       float64 // cores that the submitter's group uses
	parts            []machineUndo

	evictions []evictionUndo
}

// machineUndo is the state of a machine before something was placed for a gang.
type machineUndo struct {
	machine    int
	free       roost.Resources
	streamFree roost.MilliCPU
	units      *gpu.FreeResources
	timeline   *machineTimeline
	mixed      roost.MilliCPU // of bandMix
}

// placeOneGang places one gang of a request whose turn it is, and reports whether it
// could.
func (p gangPlanner) placeOneGang(w *requestState) bool {
	defer p.releaseParts(w)
	if n := p.gangUnitsWithinLimits(w); n < w.Gang {
		if n > 0 && w.Explain {
			w.waitReason, w.waitReasonKind = fmt.Sprintf("its %d tasks start together, and only %d may start now",
				w.Gang, n), OverLimit
		}
		return false
	}
	room := 0
	if w.unitsLeft >= w.Gang {
		if room = p.roomForGang(w); room >= w.Gang {
			if room = p.placeInSets(w); room >= w.Gang {
				return true
			}
		}
		if p.preemption().preemptForGang(w) {
			return true
		}
	}
	// a new machine may be what is missing, so unchanged machines count too
	w.noFit, w.excludedOtherwise, w.waitReason = true, true, ""
	if w.Explain {
		w.waitReasonKind = PartOnly
		if w.waitReason = fmt.Sprintf("its %d tasks start together or not at all%s", w.Gang,
			w.scattersGang()); room > 0 {
			w.waitReason += fmt.Sprintf(", and when its turn came there was room for %d", room)
		}
		if w.isMixedGang() && w.unplacedPartOf != nil {
			w.waitReason += fmt.Sprintf("; the part without room asks for %v", w.unplacedPartOf.Class.Resources)
		}
	}
	p.backfill().reserveForUnplaced(w)
	return false
}

// scattersGang describes, for a message, what the machines of a gang must be like.
func (w *requestState) scattersGang() string {
	if w.Class.PlacementSetAttr != "" {
		return w.needsMachines() + ", where " + w.Class.PlacementSetAttr + " is the same"
	}
	return w.needsMachines()
}

func (w *requestState) needsMachines() string {
	switch {
	case w.Class.Exclusive:
		return ", each exclusively on a machine of its own"
	case w.Class.Scatter:
		return ", each on a machine of its own"
	}
	return ""
}

// beginGang saves the state before anything is placed for a gang.
func (p gangPlanner) beginGang(w *requestState) {
	p.gangCount++
	w.gang = p.gangCount
	p.undo = &gangUndo{grants: len(p.result.Grants), vacatingMachines: len(p.vacatingMachines), poolFree: p.poolFree,
		submitterUsage: w.submitter.usage}
	for i := range w.parts {
		w.parts[i].gang, w.parts[i].initialLeft = w.gang, w.parts[i].unitsLeft
	}
	if g := w.submitter.group; g != nil {
		p.undo.groupUsage = g.usage
	}
}

// placeGang places all units of a gang or none, and returns for how many there is room.
func (p gangPlanner) placeGang(w *requestState) (room int) {
	p.beginGang(w)
	for _, c := range w.parts {
		for n := 0; n < c.units; {
			at, ok := p.bestMachine(c.requestState)
			if !ok {
				w.unplacedPartOf = c.requestState
				p.rollBackGang(w)
				return room
			}
			p.undo.saveMachine(p.negotiationCycle, at)
			took := p.placeOnMachine(c.requestState, at, c.units-n)
			n, room = n+took, room+took
		}
	}
	p.commitGang(w)
	return room
}

// commitGang completes the placement of a gang. Machines that a scattered gang excluded
// are candidates for the next gang of the request.
func (p gangPlanner) commitGang(w *requestState) {
	parts := p.undo.parts
	p.undo = nil
	w.countGangLimits()
	if w.isMixedGang() {
		w.unitsLeft -= w.Gang
	}
	if w.Class.Scatter && w.unitsLeft > 0 {
		for _, b := range parts {
			p.backfill().markTimelineChanged(b.machine)
		}
	}
}

// roomForGang returns an upper bound on the units of a gang that have room, at most Gang.
// Most gangs that find no room are excluded by it, without an attempt.
func (p gangPlanner) roomForGang(w *requestState) (room int) {
	for _, c := range w.parts {
		n := p.roomForPart(&c)
		if room += n; n < c.units {
			w.unplacedPartOf = c.requestState
			return room
		}
	}
	return room
}

func (p gangPlanner) roomForPart(c *gangPart) (room int) {
	w := c.requestState
	if _, ok := p.bestMachine(w); !ok {
		return 0
	}
	for _, on := range w.heap.list {
		if on.version == p.versions[on.machine] {
			if room += w.unitsPerMachine(max(1,
				w.Class.minimumSums.TimesIn(p.roomBySums(w.Class, int(on.machine))))); room >= c.units {
				return c.units
			}
		}
	}
	return room
}

// unitsPerMachine returns how many of n units of a request may be on one machine.
func (w *requestState) unitsPerMachine(n int) int {
	if w.Class.takesMachineOnce() || w.Class.Scatter && w.Gang > 1 {
		return min(n, 1)
	}
	return n
}

// hasGangUnit reports whether a machine has a unit of the gang that is being placed and
// must not get another.
func (p gangPlanner) hasGangUnit(w *requestState, at int) bool {
	return w.Class.Scatter && p.undo != nil && slices.ContainsFunc(p.undo.parts, func(b machineUndo) bool {
		return b.machine == at
	})
}

// saveMachine saves the state of a machine.
func (u *gangUndo) saveMachine(p *negotiationCycle, at int) {
	b := machineUndo{machine: at, free: p.free[at], streamFree: p.streamFree[at], mixed: p.bandMix[at]}
	if f := p.unitsFreeAt(at); f != nil {
		b.units = f
		if f != p.Machines[at].units {
			b.units = f.Clone()
		}
	}
	if f := p.timelines[at]; f != nil {
		b.timeline = f.cloneTimeline()
	}
	u.parts = append(u.parts, b)
}

// rollBackGang undoes a gang that could not be placed as a whole.
func (p gangPlanner) rollBackGang(w *requestState) {
	u := p.undo
	p.undo = nil
	p.preemption().undoEvictions(u)
	for _, c := range w.parts {
		c.preemption.release()
	}
	for _, b := range slices.Backward(u.parts) {
		p.free[b.machine], p.streamFree[b.machine] = b.free, b.streamFree
		if p.bandMix != nil {
			p.bandMix[b.machine] = b.mixed
		}
		if b.units != nil {
			p.units[b.machine] = b.units
		}
		if b.timeline != nil {
			p.timelines[b.machine] = b.timeline
		}
		p.backfill().markTimelineChanged(b.machine)
	}
	for _, c := range w.parts {
		p.countPlaced(c.requestState, c.unitsLeft-c.initialLeft)
		c.unitsLeft, c.domains = c.initialLeft, nil // counted again when needed
	}
	w.submitter.usage = u.submitterUsage // exactly, without a rounding error
	if g := w.submitter.group; g != nil {
		g.usage = u.groupUsage
	}
	p.poolFree, p.result.Grants = u.poolFree, p.result.Grants[:u.grants]
	p.ports = planPorts{} // counted again when needed
}
