package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// A claim becomes larger or smaller while its attempt runs, in two steps:
//
//	Request ─▶ the books hold the larger of both sizes ─▶ ResizeClaim: its limits change
//	Done    ─▶ the books hold what the claim has then  ─▶ ReportResized
//
// So the limits of all claims together never exceed the machine (P5), whatever step is
// the last before a crash. Only CPU and memory change. The unit, the devices, the disk
// and the cores that a claim is pinned to stay.

// claimResize is a resize of a claim that is under way.
type claimResize struct {
	attempt roost.AttemptID
	from    roost.Resources
	to      roost.Resources
	next    *roost.Resources // what was asked for meanwhile; nil: nothing
}

// ClaimResizes is the claim table as far as claims become larger or smaller.
type ClaimResizes struct{ *ClaimTable }

// ResizesOf returns the claim table as far as claims become larger or smaller.
func ResizesOf(c *ClaimTable) ClaimResizes { return ClaimResizes{c} }

// Request has the claim of a running attempt become larger or smaller. The effects
// answer the schedd, at once if the claim has that size. A request about an attempt that
// is not here gets no answer: its end says all.
func (c ClaimResizes) Request(now roost.BootTime, schedd string, a roost.AttemptID, to roost.Resources) {
	c.now = now
	claim, ok := c.Find(a)
	if !ok || claim.Schedd != schedd {
		return
	}
	c.request(claim, to)
}

func (c ClaimResizes) request(claim *Claim, to roost.Resources) {
	if r := claim.resize; r != nil {
		r.next = &to
		if to == r.to {
			r.next = nil
		}
		return
	}
	if err := c.begin(claim, to); err != nil {
		c.addEffect(ReportResized{claim, claim.Attempt, to, err.Error()})
	}
}

// begin takes what a resize needs, and has the limits changed.
func (c ClaimResizes) begin(claim *Claim, to roost.Resources) error {
	if to == claim.Resources {
		c.addEffect(ReportResized{claim, claim.Attempt, to, ""})
		return nil
	}
	if err := c.check(claim, to); err != nil {
		return err
	}
	most := claim.Resources
	most.CPU, most.Memory = max(most.CPU, to.CPU), max(most.Memory, to.Memory)
	if err := c.hold(claim, most); err != nil {
		return err
	}
	claim.resize = &claimResize{attempt: claim.Attempt, from: claim.Resources, to: to}
	c.addEffect(ResizeClaim{claim, claim.Attempt, most, to})
	return nil
}

// check refuses what cannot change in place.
func (c ClaimResizes) check(claim *Claim, to roost.Resources) error {
	other := to
	other.CPU, other.Memory = claim.Resources.CPU, claim.Resources.Memory
	switch {
	case to.CPU < 0 || to.Memory < 0 || to.CPU == 0 && to.Memory == 0:
		return fmt.Errorf("%w: a claim of %v", roost.Invalid, to)
	case other != claim.Resources:
		return fmt.Errorf("%w: only CPU and memory change in place", roost.Invalid)
	case claim.State != Busy || !claim.Running || !claim.hasPlacement || claim.endReason != "":
		return fmt.Errorf("%w: it is %v", roost.Conflict, claim.State)
	case claim.Info.Alone:
		return fmt.Errorf("%w: it has the machine alone, and all of it", roost.Conflict)
	case claim.Info.Alloc:
		return c.checkInside(claim, to)
	}
	return nil
}

// checkInside refuses to make an alloc smaller than what is inside.
func (c ClaimResizes) checkInside(alloc *Claim, to roost.Resources) error {
	inside, list := roost.Resources{}, ""
	for _, claim := range allocsOf(c.ClaimTable).holders(alloc.ID) {
		inside = inside.Add(withoutGPUs(claim.heldSize()))
		list += fmt.Sprintf(", %v with %v", claim.Attempt.Task, claim.Resources)
	}
	inside.Disk, inside.IO = 0, roost.IORates{}
	if !inside.FitsIn(roost.Resources{CPU: to.CPU, Memory: to.Memory}) {
		return fmt.Errorf("%w: inside it are %s", roost.Conflict, list[len(", "):])
	}
	return nil
}

// hold makes what the books hold for a claim another amount.
func (c ClaimResizes) hold(claim *Claim, size roost.Resources) error {
	if claim.Inside != 0 {
		return c.holdInside(claim, size)
	}
	c.reclaimer().resetUsageEstimate(claim)
	next, err := gpu.ResizedPlacement(claim.Placement, size.CPU, size.Memory)
	if err != nil {
		return err
	}
	was, unit := claim.Placement.Parts[0], next.Parts[0].Unit
	if grows := size.CPU > was.CPU || size.Memory > was.Memory; grows && len(c.queues[unit].claims) > 0 {
		return fmt.Errorf("%w: %d claims wait for what is free there", roost.Exhausted, len(c.queues[unit].claims))
	}
	if err := c.free.ReplacePlacement(claim.Placement, next); err != nil {
		return err
	}
	claim.Placement = next
	c.reclaimer().setReclaimer(claim)
	c.nodeQueues().updateFreeList(unit)
	c.version++
	return nil
}

// holdInside checks that a claim inside an alloc has room there.
func (c ClaimResizes) holdInside(claim *Claim, size roost.Resources) error {
	alloc := c.claims[claim.Inside]
	left := withoutGPUs(alloc.lendableSize())
	for _, other := range allocsOf(c.ClaimTable).holders(alloc.ID) {
		if other != claim {
			left = left.Sub(withoutGPUs(other.heldSize()))
		}
	}
	if !withoutGPUs(size).FitsIn(left) {
		return fmt.Errorf("%w: its alloc has %v cores and %v of memory for it", roost.Exhausted, left.CPU.Cores(),
			left.Memory)
	}
	return nil
}

// CheckRequirements returns why the machine does not satisfy the Requirements of an ad
// for one of its claims, or nil. What the claim holds counts as free, as it did when the
// claim was made. Whether the machine would still take it is not asked.
func (c ClaimResizes) CheckRequirements(claim *Claim, ad *classad.Ad, env *classad.EvalEnv) error {
	if _, ok := ad.Lookup(roost.AttrRequirements); !ok {
		return nil
	}
	var held []*Claim
	if claim.hasPlacement && claim.Inside == 0 {
		held = append(held, claim)
	}
	machine := c.adWriter().ad(c.preemptions().freeWithout(held))
	if m := classad.Match(machine, ad, env); !m.Right.IsTrue() {
		return fmt.Errorf("%w: the new requirements are %v for this machine", roost.Conflict, m.Right)
	}
	return nil
}

// heldSize is what the books hold for a claim: of one that is resized the larger size.
func (c *Claim) heldSize() roost.Resources {
	size := c.Resources
	if r := c.resize; r != nil {
		size.CPU, size.Memory = max(size.CPU, r.to.CPU), max(size.Memory, r.to.Memory)
	}
	return size
}

// lendableSize is what an alloc has for claims inside: while it is resized the smaller
// size.
func (c *Claim) lendableSize() roost.Resources {
	size := c.Resources
	if r := c.resize; r != nil {
		size.CPU, size.Memory = min(size.CPU, r.to.CPU), min(size.Memory, r.to.Memory)
	}
	return size
}

// Done notes that the limits of a claim are those of its new size. A refusal leaves
// the claim as it was.
func (c ClaimResizes) Done(now roost.BootTime, id ClaimID, refusal string) {
	c.now = now
	claim := c.claims[id]
	if claim == nil || claim.resize == nil {
		return
	}
	c.finish(claim, refusal)
}

func (c ClaimResizes) finish(claim *Claim, refusal string) {
	r := *claim.resize
	size := r.to
	if refusal != "" {
		size = r.from
	}
	claim.resize = nil
	if claim.hasPlacement {
		claim.Resources = size
		if err := c.hold(claim, size); err != nil {
			panic(fmt.Sprintf("%v cannot have %v of what it holds: %v", claim, size, err))
		}
	}
	if claim.Attempt != r.attempt || !claim.hasLiveAttempt() {
		return
	}
	if r.next == nil {
		c.addEffect(ReportResized{claim, r.attempt, r.to, refusal})
		return
	}
	c.request(claim, *r.next)
}
