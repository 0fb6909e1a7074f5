package slot

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A grant may name claims of lower bands that are to go for it. The new claim is their
// heir: it is decided at once what it gets, of what is free and of what the victims hold,
// and that is nobody else's from then on; the victims are told to go, and keep what they
// have until no process of theirs can be alive. So no more than the machine has is ever
// given away (P5), and each eviction serves the claim that it was meant for. The naive
// way, to evict and to ask for a claim when there is room, lets whoever comes first have
// that room.
//
// What a victim holds and the heir does not need is free when the victim has gone. An
// heir that is given up leaves what it had for others; who was told to go goes.

// PreemptionReason says for whom claims have to go, for those who read why their task was
// interrupted.
type PreemptionReason struct {
	Claims []ClaimID
	Job    string // the first in line for the new claim
	Reason string
}

// preemptions is the claim table as far as claims go for a claim of a higher band.
type preemptions struct{ *ClaimTable }

func (c *ClaimTable) preemptions() preemptions { return preemptions{c} }

// preemptibleVictims are those of the named claims that hold something and are to go. A
// claim that has ended is none any more, and the claims of prod never are: whatever a
// negotiator says, this machine does not let prod displace prod.
func (c preemptions) preemptibleVictims(named []ClaimID) ([]*Claim, error) {
	var all []*Claim
	for _, id := range named {
		claim := c.claims[id]
		switch {
		case claim == nil || !claim.hasPlacement:
		case claim.preemptor != nil:
			return nil, fmt.Errorf("%w: claim %d makes room for claim %d already", roost.Conflict, id,
				claim.preemptor.ID)
		case claim.Info.Band.IsProd():
			return nil, fmt.Errorf("%w: claim %d is of band %v, which is not displaced", roost.PermissionDenied, id,
				claim.Info.Band)
		case !slices.Contains(all, claim):
			all = append(all, claim)
		}
	}
	return all, nil
}

// planPreemption returns what a request gets when its victims have gone. It returns only
// the victims that are still necessary: room may have been made since they were chosen.
// Claims in node queues do not count, because what the victims hold would not have been
// for them.
func (c preemptions) planPreemption(r *ClaimRequest, victims []*Claim) (claimPlacement, error) {
	p, claimReq := claimPlacement{victims: victims}, r.request()
	claimReq.MayReclaim = false // nobody goes for what is only lent
	for i := len(victims) - 1; i >= 0; i-- {
		without := slices.Delete(slices.Clone(p.victims), i, i+1)
		if c.freeWithout(without).FindPlacement(claimReq, gpu.AnyUnit, &p.placement) {
			p.victims = without
		}
	}
	if len(p.victims) == 0 { // it is only others who wait that are in its way
		return c.admission().enqueue(r, fmt.Errorf("%w: others wait for what falls free", roost.Exhausted))
	}
	f := c.freeWithout(p.victims)
	if !f.FindPlacement(claimReq, gpu.AnyUnit, &p.placement) {
		return claimPlacement{}, fmt.Errorf("%w, and what %d claims would make room for is not enough",
			f.WhyNotNow(claimReq), len(victims))
	}
	return p, c.admission().matchRequirements(c.adWriter().ad(f), r)
}

// freeWithout is what would be free if some claims were gone.
func (c preemptions) freeWithout(victims []*Claim) *gpu.FreeResources {
	f := c.free.Clone()
	for unit := range c.queues {
		f.SetQueue(unit, gpu.UnitQueue{RunLimit: c.opt.Queue.RunLimit, Running: c.queues[unit].running})
	}
	for _, v := range victims {
		f.ReturnPlacement(v.Placement)
		for _, part := range v.Placement.Parts {
			if q := f.Queue(part.Unit); v.Class == gpu.BatchClass {
				q.Running--
				f.SetQueue(part.Unit, q)
			}
		}
	}
	c.ownerBounds().resizeUnits(f)
	return f
}

// evictVictims has the victims of a new claim go, and holds for it what is free now.
func (c preemptions) evictVictims(preemptor *Claim, p claimPlacement, e PreemptionReason) {
	preemptor.victims, preemptor.target, preemptor.Placement = slices.Clone(p.victims), p.placement, gpu.Placement{}
	for _, v := range p.victims {
		v.preemptor = preemptor
	}
	c.reserveFreed(preemptor, 1)
	reason := fmt.Sprintf("preempted by %v", preemptor.PreemptorDescription(e))
	for _, v := range p.victims {
		if v.State == Busy || v.hasQueuedAttempt() {
			v.Preemptor = &roost.PreemptionParty{Job: e.Job, Owner: preemptor.Owner, Band: preemptor.Info.Band}
			preemptor.Displaced = append(preemptor.Displaced, v.party())
		}
		if v.State == Exited { // no process of it is left: the news of its end stays
			v.endReason = reason
			c.releaseResources(v)
			c.nextDeadline = min(c.nextDeadline, v.nextDeadline(c.opt.ExitRetention))
			continue
		}
		c.endWhenIdle(v, Preempted, false, reason)
	}
}

// party returns the claim's job, as others who are concerned by a preemption are told of
// it.
func (c *Claim) party() roost.PreemptionParty {
	p := roost.PreemptionParty{Owner: c.Owner, Band: c.Info.Band}
	if job := c.Attempt.Task.Job; !job.IsZero() {
		p.Job = job.String()
	}
	return p
}

// PreemptorDescription says who a claim is for, and why others have to go.
func (c *Claim) PreemptorDescription(e PreemptionReason) string {
	text := fmt.Sprintf("a task of %s (%v)", c.Owner, c.Info.Band)
	if e.Job != "" {
		text = fmt.Sprintf("job %s of %s (%v)", e.Job, c.Owner, c.Info.Band)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// reserveFreed takes what an heir gets of what is free now, or gives that back.
func (c preemptions) reserveFreed(preemptor *Claim, by int) {
	if by > 0 {
		held := make([]gpu.Placement, 0, len(preemptor.victims))
		for _, v := range preemptor.victims {
			held = append(held, v.Placement)
		}
		preemptor.reserved, preemptor.victimResources = gpu.CoverPlacement(preemptor.target, held)
		c.free.TakePlacement(preemptor.reserved)
	} else {
		c.free.ReturnPlacement(preemptor.reserved)
		preemptor.reserved, preemptor.victimResources = gpu.Placement{}, gpu.Placement{}
	}
	for _, part := range preemptor.target.Parts {
		if preemptor.Class == gpu.BatchClass {
			c.queues[part.Unit].running += by
		}
		c.nodeQueues().updateFreeList(part.Unit)
	}
	c.version++
}

// victimFreed gives a preemptor its part of what a victim has released. The preemptor has
// everything when no victim is left.
func (c preemptions) victimFreed(victim *Claim) {
	preemptor := victim.preemptor
	if victim.preemptor = nil; preemptor == nil {
		return
	}
	c.reserveFreed(preemptor, -1)
	preemptor.victims = slices.DeleteFunc(preemptor.victims, func(o *Claim) bool { return o == victim })
	if len(preemptor.victims) > 0 {
		c.reserveFreed(preemptor, 1)
		return
	}
	preemptor.Placement, preemptor.target = preemptor.target, gpu.Placement{}
	c.takeResources(preemptor)
	c.nodeQueues().activateQueued(preemptor)
}

// cancelPreemption is for an heir that is given up.
func (c preemptions) cancelPreemption(preemptor *Claim) {
	if len(preemptor.victims) == 0 {
		return
	}
	c.reserveFreed(preemptor, -1)
	for _, v := range preemptor.victims {
		v.preemptor = nil
	}
	preemptor.victims, preemptor.target = nil, gpu.Placement{}
	c.ownerBounds().resizeUnits(c.free)
}
