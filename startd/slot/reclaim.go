package slot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// squeezedFor is how long a claim in reclaimed room goes on with less processor time than it asked for before it has to go: it would be better off
// elsewhere (Borg §6.2).
const squeezedFor = 10 * time.Minute

// Pressure is what the machine itself has left of its memory, whoever has the rest. A Total of 0: nobody knows.
type Pressure struct{ Available, Total roost.Bytes }

// Sampled takes in what each claim's task uses, and lets reservations follow. What that means for those in reclaimed room, Todo sees to.
func (c *Core) Sampled(now Instant, use map[ClaimID]reclaim.Amount, p Pressure) {
	c.now = now
	params := reclaim.ParamsOf(c.opt.Reclaim).Within(c.opt.Settle)
	for _, claim := range c.sorted() {
		if !claim.holds || !claim.live() || !claim.Running || claim.About.Alone {
			continue
		}
		used := use[claim.ID]
		switch limit := reclaim.Of(claim.Resources); {
		case claim.estimate == nil && c.begun > 0 && claim.Began <= c.begun:
			e := reclaim.Resumed(now, limit, used, params)
			claim.estimate = &e
		case claim.estimate == nil:
			e := reclaim.New(now, limit)
			claim.estimate = &e
		}
		claim.estimate.Sample(now, used, params)
		claim.used = used
		c.setReserved(claim, claim.estimate.Reserved())
	}
	c.sampled = true
	if short := reclaim.Short(p.Available, p.Total); short > 0 && c.opt.Reclaim != roost.ReclaimOff {
		c.shed(short, true, c.inUse(), fmt.Sprintf("the machine ran out of memory: %v of %v were left", p.Available, p.Total))
	}
	c.squeeze(now)
}

// setReserved notes what is reserved of a claim's placement, and who wants back what was lent.
func (c *Core) setReserved(claim *Claim, a reclaim.Amount) {
	_, before := claim.Placement.Reserved()
	c.free.Reserve(&claim.Placement, a.CPU, a.Memory)
	if _, after := claim.Placement.Reserved(); after > before && !claim.Placement.Reclaimed {
		c.wants = claim.who()
	}
}

// unlend has all reserved again that a claim has: a task begins, of which nobody knows yet what it needs.
func (c *Core) unlend(claim *Claim) {
	claim.estimate, claim.used = nil, reclaim.Amount{}
	if claim.holds {
		c.setReserved(claim, reclaim.Of(claim.Resources))
	}
}

// who is whom a claim is for, in words.
func (c *Claim) who() string {
	what := "a claim"
	if !c.Attempt.Task.Job.IsZero() {
		what = c.Attempt.Task.String()
	}
	return fmt.Sprintf("%s of %s (%v)", what, c.Owner, c.About.Band)
}

// reclaims lets those in reclaimed room have to themselves what has fallen free, and ends as many of them as it takes for the reservations to be met.
// It waits for a first look at what the tasks of an earlier start use.
func (c *Core) reclaims() {
	var lent []*Claim
	for _, claim := range c.claims {
		if claim.holds && claim.Placement.Reclaimed {
			lent = append(lent, claim)
		}
	}
	slices.SortFunc(lent, func(a, b *Claim) int { return cmp.Compare(a.ID, b.ID) })
	for _, claim := range lent {
		if claim.ending == "" && c.free.Settle(&claim.Placement) {
			c.version++
			c.ease(claim)
			c.emit(Place{claim})
		}
	}
	if len(lent) == 0 || !c.sampled {
		return
	}
	for unit := range c.free.Len() {
		if room := c.free.Room(unit, gpu.Batch).Memory; room < 0 {
			c.shed(-room, false, c.inUnit(unit), "its memory was reclaimed by "+c.wants)
		}
	}
}

// inUnit are those in reclaimed room of a unit, with what their reservations hold there.
func (c *Core) inUnit(unit int) (all []reclaim.Tenant) {
	for _, claim := range c.sorted() {
		if !claim.holds || !claim.Placement.Reclaimed {
			continue
		}
		t := claim.tenant()
		for _, part := range claim.Placement.Parts {
			if part.Unit == unit {
				t.Frees += part.Memory - part.LentMemory
			}
		}
		all = append(all, t)
	}
	return all
}

// inUse are all that are not production, with what they use.
func (c *Core) inUse() (all []reclaim.Tenant) {
	for _, claim := range c.sorted() {
		if claim.holds && !claim.About.Band.Prod() {
			t := claim.tenant()
			t.Frees, t.Over = claim.used.Memory, max(claim.used.Memory-claim.Resources.Memory, 0)
			all = append(all, t)
		}
	}
	return all
}

func (c *Claim) tenant() reclaim.Tenant {
	return reclaim.Tenant{
		ID: uint64(c.ID), Band: c.About.Band, Reclaimed: c.Placement.Reclaimed, Began: c.Began, Leaving: c.State == Vacating || c.ending != "",
	}
}

// shed ends claims so that need is got back. At once is for when memory itself has run out: else what can be saved is.
func (c *Core) shed(need roost.Bytes, atOnce bool, from []reclaim.Tenant, reason string) {
	for _, id := range reclaim.Choose(need, from) {
		c.finish(c.claims[ClaimID(id)], Preempted, atOnce, reason)
	}
}

// squeeze shares out what processor time others leave to those in reclaimed room when it is short, and ends those that had too little for too long.
// What counts is what the others use now, and not what is reserved for them: time that nobody uses is lost.
func (c *Core) squeeze(now Instant) {
	asked, busy := make([]roost.MilliCPU, c.free.Len()), make([]roost.MilliCPU, c.free.Len())
	for _, claim := range c.claims {
		if unit, ok := claim.squeezable(); ok {
			cpu, _ := claim.Placement.Reserved()
			asked[unit] += cpu
		} else if claim.live() && claim.holds && len(claim.Placement.Parts) > 0 {
			busy[claim.Placement.Parts[0].Unit] += claim.used.CPU
		}
	}
	for _, claim := range c.sorted() {
		unit, ok := claim.squeezable()
		if !ok {
			continue
		}
		deficit := busy[unit] + asked[unit] - c.free.Unit(unit).CPU
		if deficit <= 0 {
			c.ease(claim)
			continue
		}
		cpu, _ := claim.Placement.Reserved()
		if most := reclaim.Squeeze(deficit, asked[unit], cpu); abs(most-claim.Squeezed) > claim.Squeezed/8 {
			claim.Squeezed = most
			c.emit(Squeeze{claim})
		}
		if claim.since == 0 {
			claim.since = now
		}
		if now-claim.since >= squeezedFor {
			c.finish(claim, Preempted, false, fmt.Sprintf("its processor time was wanted back for %v", squeezedFor))
		}
	}
}

// squeezable reports whether the claim's processor time can be taken back, and the unit that it is of.
func (c *Claim) squeezable() (unit int, ok bool) {
	p := &c.Placement
	if !c.holds || !p.Reclaimed || p.Class != gpu.Batch || len(p.Parts) == 0 || c.ending != "" {
		return 0, false
	}
	return p.Parts[0].Unit, true
}

// ease lets a claim have its processor time again.
func (c *Core) ease(claim *Claim) {
	claim.since = 0
	if claim.Squeezed > 0 {
		claim.Squeezed = 0
		c.emit(Squeeze{claim})
	}
}

// RoomNews reports whether what may be lent has changed since the last ad by so much that it is worth a new one: a twentieth of a unit.
func (c *Core) RoomNews() bool {
	const part = 20
	if len(c.shownRoom) != c.free.Len() {
		return c.free.Reclaims()
	}
	for i, shown := range c.shownRoom {
		unit, room := c.free.Unit(i), c.free.Room(i, gpu.Batch)
		if c.free.Reclaims() && (abs(room.CPU-shown.CPU) > unit.CPU/part || abs(room.Memory-shown.Memory) > unit.Memory/part) {
			return true
		}
	}
	return false
}

func abs[T roost.MilliCPU | roost.Bytes](n T) T { return max(n, -n) }

// showRoom notes what the ad that is being made says may be lent.
func (c *Core) showRoom() {
	c.shownRoom = c.shownRoom[:0]
	for i := range c.free.Len() {
		c.shownRoom = append(c.shownRoom, c.free.Room(i, gpu.Batch))
	}
}
