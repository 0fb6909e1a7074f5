package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/mutant"
)

// A claim may be an alloc (Borg §2.4): a part of the machine inside which its schedd has
// other claims made, for tasks of its owner, and of users whom the owner has allowed. The
// schedd decides that, as it decides whose tasks its claims run. They hold nothing of the
// machine themselves: to everybody else the alloc has it all, whether it is used or not.
// For each resource
//
//	Σ claims inside <= alloc
//
// An alloc outlives what is inside. It is open while its own attempt runs, which does
// nothing. When that is told to end, the claims inside end first, in their own order of
// stopping, and then the alloc's attempt; so the alloc's resources go back when no
// process inside can be alive. If the alloc's attempt ends by itself, its end is reported
// when those inside have ended.

// MaxInside bounds the claims inside one alloc: each has a starter.
const MaxInside = 64

// allocClaims is the claim table as far as claims are inside others.
type allocClaims struct{ *ClaimTable }

// allocsOf returns the claim table as far as claims are inside others.
func allocsOf(c *ClaimTable) allocClaims { return allocClaims{c} }

// holders returns the claims inside an alloc that hold a part of it, by their ids.
func (c allocClaims) holders(alloc ClaimID) (all []*Claim) {
	for _, claim := range c.claims.sorted() {
		if claim.Inside == alloc && claim.hasPlacement {
			all = append(all, claim)
		}
	}
	return all
}

// decideInside makes a claim inside an alloc, or refuses it, like DecideClaim.
func (c allocClaims) decideInside(r *ClaimRequest) (*Claim, error) {
	placement, err := c.placeInside(r)
	var ports []roost.ClaimPort
	if err == nil {
		ports, err = c.admission().findPorts(r.Ports)
	}
	if err != nil {
		c.addEffect(RejectClaim{r.Session, r.Grant, err.Error()})
		return nil, err
	}
	alloc := c.claims[r.Alloc]
	r.Info.Alloc, r.Info.Alone = false, false
	claim := &Claim{
		ID: c.ids.Reserve(), Grant: r.Grant, Schedd: r.Schedd, Owner: r.Owner, Info: r.Info, UID: r.UID, GID: r.GID,
		Class: r.Class, Inside: alloc.ID, Resources: r.Resources, Placement: placement,
		Lease: min(c.now+r.Lease, alloc.Lease), LeasePeriod: min(r.Lease, alloc.LeasePeriod),
		session: r.Session, queue: nowhere,
	}
	c.addClaim(claim)
	PortsOf(c.ClaimTable).hold(claim, r.Ports.Job, ports)
	c.nextDeadline = min(c.nextDeadline, claim.Lease)
	c.addEffect(CreateClaim{claim})
	c.takeResources(claim)
	return claim, nil
}

// placeInside says what a request gets of its alloc, or why nothing. The request needs no
// capability: the schedd holds the alloc already.
func (c allocClaims) placeInside(r *ClaimRequest) (p gpu.Placement, err error) {
	alloc := c.claims[r.Alloc]
	switch {
	case alloc == nil || alloc.Schedd != r.Schedd || alloc.Inside != 0 || !alloc.Info.Alloc:
		return p, fmt.Errorf("%w: claim %d is no alloc of this schedd", roost.NotFound, r.Alloc)
	case alloc.endReason != "":
		return p, fmt.Errorf("%w: its alloc ends: %s", roost.Unavailable, alloc.endReason)
	case alloc.State != Busy || !alloc.Running || alloc.endedFirst:
		return p, fmt.Errorf("%w: its alloc is %v", roost.Unavailable, alloc.State)
	case c.unavailableReason != "":
		return p, fmt.Errorf("%w: %s", roost.Unavailable, c.unavailableReason)
	case r.Lease <= 0 || r.Resources.IsNegative() || r.Resources == roost.Resources{}:
		return p, fmt.Errorf("%w: a claim of %v for %v", roost.Invalid, r.Resources, r.Lease)
	case r.AccountError != nil:
		return p, r.AccountError
	}
	inside := c.holders(alloc.ID)
	if len(inside) >= MaxInside {
		return p, fmt.Errorf("%w: the alloc has %d claims inside, and may have no more", roost.Exhausted, len(inside))
	}
	left := withoutGPUs(alloc.lendableSize())
	for _, claim := range inside {
		if claim.Grant == r.Grant {
			return p, fmt.Errorf("%w: the claim was asked for before", roost.Stale)
		}
		if !mutant.Active(mutant.AllocUncounted) {
			left = left.Sub(withoutGPUs(claim.heldSize()))
		}
	}
	if !withoutGPUs(r.Resources).FitsIn(left) {
		return p, fmt.Errorf("%w: the alloc has %v left, and %v is asked for", roost.Exhausted, left, r.Resources)
	}
	shares, ok := allocShares(alloc, inside, r.Resources)
	if !ok {
		return p, fmt.Errorf("%w: no GPU of the alloc has %v left", roost.Exhausted, r.Resources)
	}
	return gpu.Placement{Class: r.Class, Disk: r.Resources.Disk, IO: r.Resources.IO, Shares: shares}, nil
}

// withoutGPUs is what of resources is counted as a sum. Several claims may share a GPU.
func withoutGPUs(r roost.Resources) roost.Resources {
	r.GPUs, r.GPUMemory = 0, 0
	return r
}

// allocShares finds devices for a claim among those of its alloc. They are whole ones
// that nobody else has inside, or a share of the memory of each.
func allocShares(alloc *Claim, inside []*Claim, want roost.Resources) (shares []gpu.DeviceShare, ok bool) {
	if want.GPUs == 0 {
		return nil, true
	}
	used, whole := map[int]roost.Bytes{}, map[int]bool{}
	for _, claim := range inside {
		for _, s := range claim.Placement.Shares {
			used[s.Device] += s.Memory
			whole[s.Device] = whole[s.Device] || s.Whole
		}
	}
	for _, s := range alloc.Placement.Shares {
		switch {
		case len(shares) == want.GPUs || whole[s.Device]:
		case want.GPUMemory == 0 && used[s.Device] == 0:
			shares = append(shares, s)
		case want.GPUMemory > 0 && used[s.Device]+want.GPUMemory <= s.Memory:
			shares = append(shares, gpu.DeviceShare{Device: s.Device, Memory: want.GPUMemory})
		}
	}
	return shares, len(shares) == want.GPUs
}

// holdsOpen reports whether the end of an attempt has to wait for claims inside, and has
// them end. The end is noted when the last one is gone, which may be at once.
func (c allocClaims) holdsOpen(alloc *Claim) bool {
	if !alloc.Info.Alloc || len(c.holders(alloc.ID)) == 0 {
		alloc.endedFirst = false
		return false
	}
	alloc.endedFirst, alloc.pendingVacate = true, nil
	if alloc.State == Busy {
		alloc.setState(Vacating)
	}
	c.endInside(alloc, Vacated, false, "the process that kept it open has ended")
	return true
}

// endInsideFirst has the claims inside an alloc end before its own attempt is told to. It
// reports whether there are any.
func (c allocClaims) endInsideFirst(order VacateAttempt) bool {
	alloc := order.Claim
	if !alloc.Info.Alloc || len(c.holders(alloc.ID)) == 0 {
		return false
	}
	if !alloc.endedFirst {
		alloc.pendingVacate = &order
	}
	c.endInside(alloc, order.Cause, order.Fast, order.Reason)
	return true
}

// endInside ends all claims inside an alloc.
func (c allocClaims) endInside(alloc *Claim, cause EndCause, fast bool, reason string) {
	reason = "its alloc ends: " + reason
	for _, claim := range c.holders(alloc.ID) {
		if cause == Preempted {
			claim.Preemptor = alloc.Preemptor
		}
		if claim.State == Exited { // no process of it is left: the news of its end stays
			claim.endReason = reason
			c.releaseResources(claim)
			c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
			continue
		}
		c.endWhenIdle(claim, cause, fast, reason)
	}
}

// leftAlloc notes that a claim inside an alloc holds nothing of it any more. The alloc
// that waits for the last one ends then.
func (c allocClaims) leftAlloc(id ClaimID) {
	alloc := c.claims[id]
	if alloc == nil || !alloc.endedFirst && alloc.pendingVacate == nil || len(c.holders(id)) > 0 {
		return
	}
	if alloc.endedFirst {
		c.Ended(c.now, id, alloc.Attempt)
		return
	}
	order := *alloc.pendingVacate
	alloc.pendingVacate = nil
	c.addEffect(order)
}

// adoptInside says whether a claim of an earlier start has its alloc still, and what it
// holds there. One without an alloc goes.
func (c allocClaims) adoptInside(own *Claim) (holds bool, err error) {
	alloc := c.claims[own.Inside]
	if alloc != nil && alloc.Info.Alloc && alloc.hasPlacement && alloc.hasLiveAttempt() {
		left := withoutGPUs(alloc.Resources)
		for _, claim := range c.holders(alloc.ID) {
			left = left.Sub(withoutGPUs(claim.Resources))
		}
		if withoutGPUs(own.Resources).FitsIn(left) {
			return true, nil
		}
	}
	if own.State == Busy && own.ProcessesGone {
		own.endReason = "its alloc has ended"
		return false, nil
	}
	return false, fmt.Errorf("claim %d: %w: its alloc has ended", own.ID, roost.Unavailable)
}

// checkAllocShares panics when claims inside an alloc have more of a device than it has.
func checkAllocShares(alloc *Claim, inside []*Claim) {
	left := map[int]roost.Bytes{}
	for _, s := range alloc.Placement.Shares {
		left[s.Device] = s.Memory
	}
	for _, claim := range inside {
		for _, s := range claim.Placement.Shares {
			if left[s.Device] -= s.Memory; left[s.Device] < 0 {
				panic(fmt.Sprintf("%v has more of device %d than %v has", claim, s.Device, alloc))
			}
		}
	}
}

// checkAllocs panics when claims inside an alloc have more than it has, or outlive it.
func (c invariants) checkAllocs() {
	held := map[ClaimID]roost.Resources{}
	for _, claim := range c.claims.sorted() {
		if claim.Inside == 0 || !claim.hasPlacement {
			continue
		}
		alloc := c.claims[claim.Inside]
		if alloc == nil || !alloc.Info.Alloc || !alloc.hasPlacement || !alloc.hasLiveAttempt() ||
			alloc.Schedd != claim.Schedd {
			panic(fmt.Sprintf("%v is inside %v", claim, alloc))
		}
		sum := held[alloc.ID].Add(withoutGPUs(claim.heldSize()))
		if held[alloc.ID] = sum; !sum.FitsIn(alloc.lendableSize()) {
			panic(fmt.Sprintf("%v has %v, and the claims inside %v", alloc, alloc.Resources, sum))
		}
		checkAllocShares(alloc, allocsOf(c.ClaimTable).holders(alloc.ID))
		if (alloc.endedFirst || alloc.pendingVacate != nil) && claim.endReason == "" {
			panic(fmt.Sprintf("%v ends, and %v inside does not", alloc, claim))
		}
	}
	for _, claim := range c.claims.sorted() {
		if (claim.endedFirst || claim.pendingVacate != nil) && len(allocsOf(c.ClaimTable).holders(claim.ID)) == 0 {
			panic(fmt.Sprintf("%v waits for claims inside, and there are none", claim))
		}
	}
}
