package slot

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// The owner of the machine may lend only a part of it. Then the units are as large as he says, for everybody who looks at them: requests, queues, and
// those who read the ad. While tasks run that were given more, a unit is as large as what they hold of it, and
//
//	size(unit) > bound(unit)  =>  nothing of it is free, and enough claims have been told to go
//
// at every instant: what falls free makes the unit smaller before anybody can be given it. So nobody is let in who would have to go at once.

// bounds are what the owner lends of each unit.
type bounds struct {
	each []gpu.Bound // empty: all there is
	why  string      // for those who have to go
}

// Bound takes in the most processor time and memory that the owner lends, 0 for all there is, and the sentence for those who have to go.
func (c *Core) Bound(now Instant, cpu roost.MilliCPU, memory roost.Bytes, why string) {
	c.now = now
	each := gpu.Bounds(c.opt.Units, cpu, memory)
	if c.bounds.why = why; slices.Equal(each, c.bounds.each) {
		return
	}
	c.bounds.each = each
	c.wants = "the owner of the machine"
	c.version++
	c.resize(c.free)
}

// resize brings units to their bounds, as far as nobody holds what is beyond them.
func (c *Core) resize(f *gpu.Free) {
	for unit, bound := range c.bounds.each {
		if f.Resize(unit, bound) && f == c.free {
			c.version++
		}
	}
}

// withhold has as many claims go as it takes for the units to be within their bounds: those first that are to get what others still hold, then whoever
// would go if memory were reclaimed. Production is no exception: it is the owner's machine.
func (c *Core) withhold() {
	if len(c.bounds.each) == 0 {
		return
	}
	for unit, bound := range c.bounds.each {
		for _, class := range []gpu.Class{gpu.Batch, gpu.Stream} {
			if c.free.Excess(unit, class, bound) != (gpu.Bound{}) {
				c.disinherit(unit)
			}
			c.cut(c.free.Excess(unit, class, bound).CPU, unit, func(cl *Claim, p gpu.Part) roost.MilliCPU {
				if cl.Class != class {
					return 0
				}
				return p.CPU
			})
		}
		c.cut(roost.MilliCPU(c.free.Excess(unit, gpu.Batch, bound).Memory), unit, func(_ *Claim, p gpu.Part) roost.MilliCPU { return roost.MilliCPU(p.Memory) })
	}
	c.turnAway()
}

// disinherit gives up those who were to get a part of a unit from others that go.
func (c *Core) disinherit(unit int) {
	for _, claim := range c.sorted() {
		if claim.ending == "" && len(claim.victims) > 0 && slices.ContainsFunc(claim.awaited.Parts, func(p gpu.Part) bool { return p.Unit == unit }) {
			c.finish(claim, Vacated, true, c.bounds.why)
		}
	}
}

// cut ends claims until so much of a unit, of whatever part counts, is got back.
func (c *Core) cut(need roost.MilliCPU, unit int, part func(*Claim, gpu.Part) roost.MilliCPU) {
	if need <= 0 {
		return
	}
	var all []reclaim.Tenant
	for _, claim := range c.sorted() {
		t := claim.tenant()
		if !claim.Running {
			t.Began = never // it has nothing to lose
		}
		for _, p := range claim.owned() {
			if p.Unit == unit && (claim.heir == nil || claim.heir.ending != "") {
				t.Frees += roost.Bytes(part(claim, p))
			}
		}
		all = append(all, t)
	}
	for _, id := range reclaim.Choose(roost.Bytes(need), all) {
		c.evacuate(c.claims[ClaimID(id)], c.bounds.why)
	}
}

// owned is what of units nobody else can have because of a claim.
func (c *Claim) owned() []gpu.Part {
	switch {
	case len(c.victims) > 0:
		return c.reserved.Parts
	case !c.holds || c.Placement.Reclaimed:
		return nil
	}
	return c.Placement.Parts
}

// evacuate has a claim go, with the news of what has ended on it kept.
func (c *Core) evacuate(claim *Claim, reason string) {
	if claim.State != Exited {
		c.finish(claim, Vacated, false, reason)
		return
	}
	claim.ending = reason
	c.giveBack(claim)
	c.leave(claim)
	c.wake = min(c.wake, claim.due(c.opt.KeepExits))
}

// turnAway ends the waiting of those who would not fit if they were alone.
func (c *Core) turnAway() {
	f := c.free.Empty()
	c.resize(f)
	for _, claim := range c.sorted() {
		if claim.queue != nowhere && claim.ending == "" && claim.State != Exited && f.Never(claim.request()) != nil {
			c.finish(claim, Vacated, true, c.bounds.why)
		}
	}
}
