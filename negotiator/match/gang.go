package match

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A gang is so many units of a request that start together, on one machine or on several,
// or not at all. Its units are placed one after another like any others; should one of
// them find no place, all that was taken for those before it is given back. Whoever gets
// half of a gang could do nothing with it, and two halves of two gangs would keep each
// other waiting for ever.

// gangUndo is what there was before something was placed for a gang.
type gangUndo struct {
	grants           int
	vacatingMachines int
	poolFree         roost.Resources
	submitterUsage   float64 // by its submitter
	groupUsage       float64 // by that one's group
	parts            []machineUndo

	evictions []evictionUndo
}

// machineUndo is how a machine stood.
type machineUndo struct {
	machine    int
	free       roost.Resources
	streamFree roost.MilliCPU
	units      *gpu.FreeResources
	timeline   *machineTimeline
}

// placeOneGang places one gang of a want that may take its turn, and reports whether it
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
	w.noFit, w.excludedOtherwise, w.waitReason = true, true, "" // one machine more may be what is missing
	if w.Explain {
		w.waitReasonKind = PartOnly
		if w.waitReason = fmt.Sprintf("its %d tasks start together or not at all%s", w.Gang,
			w.scattersGang()); room > 0 {
			w.waitReason += fmt.Sprintf(", and when its turn came there was room for %d", room)
		}
		if w.isMixedGang() && w.unplacedPartOf != nil {
			w.waitReason += fmt.Sprintf("; what finds none asks for %v", w.unplacedPartOf.Class.Resources)
		}
	}
	p.backfill().reserveForUnplaced(w)
	return false
}

// scattersGang says of a gang whose tasks may not share a machine that it is one.
func (w *requestState) scattersGang() string {
	if w.Class.PlacementSetAttr != "" {
		return w.needsMachines() + ", where " + w.Class.PlacementSetAttr + " is the same"
	}
	return w.needsMachines()
}

func (w *requestState) needsMachines() string {
	switch {
	case w.Class.Exclusive:
		return ", on a machine each that they have alone"
	case w.Class.Scatter:
		return ", on a machine each"
	}
	return ""
}

// beginGang notes how things are before anything is placed for a gang.
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

// placeGang places all units of a gang, or none, and returns for how many there is room.
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

// commitGang notes that all units of a gang have their places. Machines that it kept to
// itself are there for the next one of the want.
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

// roomForGang is for how many units of a gang there may be room, or the whole of it. Most
// that find none are not worth the trying.
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

// unitsPerMachine is how many of n units of a want may be on one machine.
func (w *requestState) unitsPerMachine(n int) int {
	if w.Class.Exclusive || w.Class.Scatter && w.Gang > 1 {
		return min(n, 1)
	}
	return n
}

// hasGangUnit reports whether a machine has a unit of the gang that is being placed, and
// may have no other.
func (p gangPlanner) hasGangUnit(w *requestState, at int) bool {
	return w.Class.Scatter && p.undo != nil && slices.ContainsFunc(p.undo.parts, func(b machineUndo) bool {
		return b.machine == at
	})
}

// saveMachine keeps how a machine stands.
func (u *gangUndo) saveMachine(p *negotiationCycle, at int) {
	b := machineUndo{machine: at, free: p.free[at], streamFree: p.streamFree[at]}
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

// rollBackGang takes a gang back of which not all could be placed.
func (p gangPlanner) rollBackGang(w *requestState) {
	u := p.undo
	p.undo = nil
	p.preemption().undoEvictions(u)
	for _, c := range w.parts {
		c.preemption.release()
	}
	for _, b := range slices.Backward(u.parts) {
		p.free[b.machine], p.streamFree[b.machine] = b.free, b.streamFree
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
		c.unitsLeft, c.domains = c.initialLeft, nil // counted anew when it is looked at
	}
	w.submitter.usage = u.submitterUsage // to the bit
	if g := w.submitter.group; g != nil {
		g.usage = u.groupUsage
	}
	p.poolFree, p.result.Grants = u.poolFree, p.result.Grants[:u.grants]
}
