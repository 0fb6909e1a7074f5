package slot

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/roost-batch/roost/gpu"
)

// invariants is the claim table as far as it checks itself.
type invariants struct{ *ClaimTable }

func (c *ClaimTable) invariants() invariants { return invariants{c} }

// Check panics when the books contradict themselves.
func (c *ClaimTable) Check() { c.invariants().check() }

// check panics when the books contradict themselves.
func (c invariants) check() {
	free, busy, waiting := c.free.EmptyClone(), 0, 0
	running := make([]int, len(c.queues))
	described := 0
	for _, claim := range c.claims.sorted() {
		c.checkClaim(claim)
		described += claim.adBytes
		if claim.hasPlacement && claim.Inside == 0 {
			free.TakePlacement(claim.Placement)
			for _, part := range claim.Placement.Parts {
				if claim.Class == 0 {
					running[part.Unit]++
				}
			}
		}
		if claim.Info.Limits != "" && claim.queue != nowhere {
			panic(fmt.Sprintf("%v has licences that the ad says nothing of: it waits for unit %d", claim, claim.queue))
		}
		c.checkPreemptor(claim)
		free.TakePlacement(claim.reserved)
		if len(claim.victims) > 0 && claim.Class == gpu.BatchClass {
			for _, part := range claim.target.Parts {
				running[part.Unit]++
			}
		}
		if claim.hasLiveAttempt() || claim.State == Exited || claim.hasQueuedAttempt() {
			busy++
			if c.tasks[claim.Attempt.Task] != claim {
				panic(fmt.Sprintf("%v: attempt %v is not on it", claim, claim.Attempt))
			}
		}
		if claim.queue != nowhere {
			waiting++
		}
	}
	if busy != len(c.tasks) {
		panic(fmt.Sprintf("%d claims have an attempt, and %d tasks are known", busy, len(c.tasks)))
	}
	for unit := range c.queues {
		q := &c.queues[unit]
		if got := c.free.Queue(unit); got.Length != len(q.claims) || got.Running != q.running ||
			running[unit] != q.running {
			panic(fmt.Sprintf("unit %d: the free list has %+v, the queue %d claims, and %d run", unit,
				got, len(q.claims), running[unit]))
		}
		for _, claim := range q.claims {
			waiting--
			if claim.queue != unit || claim != c.claims[claim.ID] {
				panic(fmt.Sprintf("%v stands in the queue of unit %d", claim, unit))
			}
		}
	}
	if waiting != 0 {
		panic(fmt.Sprintf("%d claims say that they wait, and are in no queue", waiting))
	}
	if !free.HasSameFree(c.free) {
		panic(fmt.Sprintf("free is %v, and by the claims %v", c.free.LeftForBatch(), free.LeftForBatch()))
	}
	if described != c.claimsAdBytes {
		panic(fmt.Sprintf("claims may take %d bytes of the ad, and %d are counted", described, c.claimsAdBytes))
	}
	c.checkUnitSizes()
	c.checkPorts()
	c.checkAllocs()
}

// checkUnitSizes panics when a unit is smaller than its owner lends, or larger while
// something of it is free.
func (c invariants) checkUnitSizes() {
	for unit, bound := range c.ownerLimits.perUnit {
		u := c.free.Unit(unit)
		batch, stream := c.free.UnitFree(unit, gpu.BatchClass), c.free.UnitFree(unit, gpu.StreamClass)
		if u.CPU < bound.CPU || u.Memory < bound.Memory || u.CPU > bound.CPU && min(batch.CPU, stream.CPU) > 0 ||
			u.Memory > bound.Memory && batch.Memory > 0 {
			panic(fmt.Sprintf("unit %d has %v and %v, free are %v, and lent %+v", unit, u.CPU, u.Memory, batch, bound))
		}
	}
}

// checkOwnerLimits panics if claims exceed the owner limits and too few of them are
// leaving. It is called when everything that was due is done.
func (c invariants) checkOwnerLimits() {
	for unit, bound := range c.ownerLimits.perUnit {
		for _, class := range []gpu.AppClass{gpu.BatchClass, gpu.StreamClass} {
			over := c.free.ExcessOver(unit, class, bound)
			for _, claim := range c.claims.sorted() {
				if claim.endReason == "" && claim.State != Vacating {
					continue
				}
				for _, p := range claim.heldResources() {
					if p.Unit == unit {
						over.Memory -= p.Memory
						if claim.Class == class {
							over.CPU -= p.CPU
						}
					}
				}
			}
			if over.CPU > 0 || over.Memory > 0 {
				panic(fmt.Sprintf("unit %d: %+v more has been given to class %v than is lent, and nobody goes", unit,
					over, class))
			}
		}
	}
}

// checkPreemptor holds what an heir has and gets against what its victims hold.
func (c invariants) checkPreemptor(claim *Claim) {
	if v := claim.preemptor; v != nil &&
		(!claim.hasPlacement || claim.endReason == "" || !slices.Contains(v.victims, claim)) {
		panic(fmt.Sprintf("%v makes room for %v; holds %v, ending %q", claim, v, claim.hasPlacement, claim.endReason))
	}
	var held []gpu.Placement
	for _, v := range claim.victims {
		if v.preemptor != claim || claim.hasPlacement || claim.queue != nowhere {
			panic(fmt.Sprintf("%v waits for %v, whose heir is %v", claim, v, v.preemptor))
		}
		held = append(held, v.Placement)
	}
	if now, _ := gpu.CoverPlacement(claim.target, held); len(held) == 0 && !claim.reserved.Zero() ||
		len(held) > 0 && !reflect.DeepEqual(now, claim.reserved) {
		panic(fmt.Sprintf("%v has %+v of %+v, while its victims hold %+v", claim, claim.reserved, claim.target, held))
	}
}

func (c invariants) checkClaim(claim *Claim) {
	if c.claims[claim.ID] != claim || claim.ID >= c.ids.next || claim.State == Gone {
		panic(fmt.Sprintf("%v does not stand under its id, next is %d", claim, c.ids.next))
	}
	in := claim.IsWaiting()
	ok := true
	switch claim.State {
	case Creating:
		ok = claim.hasPlacement != in
	case Idle, Busy, Vacating:
		ok = (claim.hasPlacement || claim.ProcessesGone && claim.hasLiveAttempt()) && !in
	case Waiting:
		ok = !claim.hasPlacement && in
	case Exited: // it has passed its resources on, or they were taken when its lease was over
		ok = !(claim.hasPlacement && in) && (claim.hasPlacement || in || claim.endReason != "")
	}
	if !ok {
		panic(fmt.Sprintf("%v: holds %v, waits %v, ending %q", claim, claim.hasPlacement, in, claim.endReason))
	}
	if claim.Info.Alone && claim.hasPlacement && c.claims.placed() > 1 {
		panic(fmt.Sprintf("%v has the machine alone, with %d others", claim, c.claims.placed()-1))
	}
	if claim.Placement.Reclaimed && claim.Info.Band.IsProd() {
		panic(fmt.Sprintf("%v: production in reclaimed room", claim))
	}
	if due := claim.nextDeadline(c.opt.ExitRetention); due < c.nextDeadline {
		panic(fmt.Sprintf("%v is due at %v, before the wake at %v", claim, due, c.nextDeadline))
	}
}

// checkOvercommit panics if more is reserved than there is while claims in reclaimed room
// stay. It is called when everything that was due is done.
func (c invariants) checkOvercommit() {
	if !c.hasUsageSamples {
		return
	}
	for unit := range c.free.Len() {
		short := -c.free.Reclaimable(unit, gpu.BatchClass).Memory
		for _, t := range c.reclaimer().reclaimedIn(unit) {
			if t.IsVacating {
				short -= t.Freed
			}
		}
		if short > 0 {
			panic(fmt.Sprintf("unit %d: %v more is reserved than there is, and nobody goes", unit, short))
		}
	}
}
