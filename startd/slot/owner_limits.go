package slot

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// The owner of the machine may lend only a part of it. Then the units are as large as he
// says, for everybody who looks at them: requests, queues, and those who read the ad.
// While tasks run that were given more, a unit is as large as what they hold of it, and
//
//	size(unit) > bound(unit)  =>  nothing of it is free, and enough claims have been told to go
//
// at every instant: what falls free makes the unit smaller before anybody can be given
// it. So nobody is let in who would have to go at once.

// ownerLimits are what the owner lends of each unit.
type ownerLimits struct {
	perUnit []gpu.UnitBound // empty: all there is
	reason  string          // for those who have to go
}

// ownerBounds is the claim table as far as the owner lends only a part of the machine.
type ownerBounds struct{ *ClaimTable }

func (c *ClaimTable) ownerBounds() ownerBounds { return ownerBounds{c} }

// SetOwnerLimits sets the most CPU and memory that the owner gives the pool; 0: all. The
// claims that have to go get the sentence as their reason.
func (c *ClaimTable) SetOwnerLimits(now roost.BootTime, cpu roost.MilliCPU, memory roost.Bytes, why string) {
	c.now = now
	each := gpu.UnitBounds(c.opt.Units, cpu, memory)
	if c.ownerLimits.reason = why; slices.Equal(each, c.ownerLimits.perUnit) {
		return
	}
	c.ownerLimits.perUnit = each
	c.lastReclaimer, c.reclaimerParty = "the owner of the machine", nil
	c.version++
	c.ownerBounds().resizeUnits(c.free)
}

// resizeUnits brings units to their bounds, as far as nobody holds what is beyond them.
func (c ownerBounds) resizeUnits(f *gpu.FreeResources) {
	for unit, bound := range c.ownerLimits.perUnit {
		if f.ResizeUnit(unit, bound) && f == c.free {
			c.version++
		}
	}
}

// enforceOwnerLimits ends as many claims as necessary for the units to be within their
// bounds. Those that are to get what others still hold go first, then those that would go
// if memory were reclaimed. Production is no exception: it is the owner's machine.
func (c ownerBounds) enforceOwnerLimits() {
	if len(c.ownerLimits.perUnit) == 0 {
		return
	}
	for unit, bound := range c.ownerLimits.perUnit {
		for _, class := range []gpu.AppClass{gpu.BatchClass, gpu.StreamClass} {
			if c.free.ExcessOver(unit, class, bound) != (gpu.UnitBound{}) {
				c.cancelPreemptions(unit)
			}
			c.endClaimsFor(c.free.ExcessOver(unit, class, bound).CPU, unit,
				func(cl *Claim, p gpu.UnitPart) roost.MilliCPU {
					if cl.Class != class {
						return 0
					}
					return p.CPU
				})
		}
		c.endClaimsFor(roost.MilliCPU(c.free.ExcessOver(unit, gpu.BatchClass, bound).Memory), unit,
			func(_ *Claim, p gpu.UnitPart) roost.MilliCPU {
				return roost.MilliCPU(p.Memory)
			})
	}
	c.rejectUnplaceable()
}

// cancelPreemptions gives up those who were to get a part of a unit from others that go.
func (c ownerBounds) cancelPreemptions(unit int) {
	for _, claim := range c.claims.sorted() {
		if claim.endReason == "" && len(claim.victims) > 0 &&
			slices.ContainsFunc(claim.target.Parts, func(p gpu.UnitPart) bool {
				return p.Unit == unit
			}) {
			c.endWhenIdle(claim, Vacated, true, c.ownerLimits.reason)
		}
	}
}

// endClaimsFor ends claims until so much of a unit, of whatever part counts, is got back.
func (c ownerBounds) endClaimsFor(need roost.MilliCPU, unit int, part func(*Claim, gpu.UnitPart) roost.MilliCPU) {
	if need <= 0 {
		return
	}
	var all []reclaim.EvictionCandidate
	for _, claim := range c.claims.sorted() {
		t := claim.evictionCandidate()
		if !claim.Running {
			t.Began = noDeadline // it has nothing to lose
		}
		for _, p := range claim.heldResources() {
			if p.Unit == unit && (claim.preemptor == nil || claim.preemptor.endReason != "") {
				t.Freed += roost.Bytes(part(claim, p))
			}
		}
		all = append(all, t)
	}
	for _, id := range reclaim.SelectVictims(roost.Bytes(need), all) {
		c.endClaim(c.claims[ClaimID(id)], c.ownerLimits.reason)
	}
}

// heldResources is what of units nobody else can have because of a claim.
func (c *Claim) heldResources() []gpu.UnitPart {
	switch {
	case len(c.victims) > 0:
		return c.reserved.Parts
	case !c.hasPlacement || c.Placement.Reclaimed:
		return nil
	}
	return c.Placement.Parts
}

// endClaim has a claim go, with the news of what has ended on it kept.
func (c ownerBounds) endClaim(claim *Claim, reason string) {
	if claim.State != Exited {
		c.endWhenIdle(claim, Vacated, false, reason)
		return
	}
	claim.endReason = reason
	c.releaseResources(claim)
	c.nodeQueues().leaveQueue(claim)
	c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
}

// rejectUnplaceable ends the waiting of those who would not fit if they were alone.
func (c ownerBounds) rejectUnplaceable() {
	f := c.free.EmptyClone()
	c.resizeUnits(f)
	for _, claim := range c.claims.sorted() {
		if claim.queue != nowhere && claim.endReason == "" && claim.State != Exited &&
			f.WhyNever(claim.request()) != nil {
			c.endWhenIdle(claim, Vacated, true, c.ownerLimits.reason)
		}
	}
}
