package slot

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A grant may name claims of lower bands that are to go for it. The new claim is their heir: it is decided at once what it gets, of what is free and of what
// the victims hold, and that is nobody else's from then on; the victims are told to go, and keep what they have until no process of theirs can be alive.
// So no more than the machine has is ever given away (P5), and each eviction serves the claim that it was meant for. The naive way, to evict and to ask
// for a claim when there is room, lets whoever comes first have that room.
//
// What a victim holds and the heir does not need is free when the victim has gone. An heir that is given up leaves what it had for others; who was
// told to go goes.

// Evicted says for whom claims have to go, for those who read why their task was interrupted.
type Evicted struct {
	Claims []ClaimID
	Job    string // the first in line for the new claim
	Why    string
}

// victims are those of the named claims that hold something and are to go. A claim that has ended is none any more, and the claims of prod never are:
// whatever a negotiator says, this machine does not let prod displace prod.
func (c *Core) victims(named []ClaimID) ([]*Claim, error) {
	var all []*Claim
	for _, id := range named {
		claim := c.claims[id]
		switch {
		case claim == nil || !claim.holds:
		case claim.heir != nil:
			return nil, fmt.Errorf("%w: claim %d makes room for claim %d already", roost.Conflict, id, claim.heir.ID)
		case claim.About.Band.Prod():
			return nil, fmt.Errorf("%w: claim %d is of band %v, which is not displaced", roost.PermissionDenied, id, claim.About.Band)
		case !slices.Contains(all, claim):
			all = append(all, claim)
		}
	}
	return all, nil
}

// inherit says what a request gets when the victims have gone, and which of them really have to: since they were chosen, room may have been made.
// Those who wait in queues have no say in it, for they would have had none in what the victims hold.
func (c *Core) inherit(r *ClaimRequest, victims []*Claim) (plan, error) {
	p, wish := plan{victims: victims}, r.request()
	wish.MayReclaim = false // nobody goes for what is only lent
	for i := len(victims) - 1; i >= 0; i-- {
		without := slices.Delete(slices.Clone(p.victims), i, i+1)
		if c.without(without).Find(wish, gpu.Anywhere, &p.placement) {
			p.victims = without
		}
	}
	if len(p.victims) == 0 { // it is only others who wait that are in its way
		return c.line(r, fmt.Errorf("%w: others wait for what falls free", roost.Exhausted))
	}
	f := c.without(p.victims)
	if !f.Find(wish, gpu.Anywhere, &p.placement) {
		return plan{}, fmt.Errorf("%w, and what %d claims would make room for is not enough", f.Why(wish), len(victims))
	}
	return p, c.match(c.ad(f), r)
}

// without is what would be free if some claims were gone.
func (c *Core) without(victims []*Claim) *gpu.Free {
	f := c.free.Clone()
	for unit := range c.queues {
		f.SetQueue(unit, gpu.Queue{RunLimit: c.opt.Queue.RunLimit, Running: c.queues[unit].running})
	}
	for _, v := range victims {
		f.Give(v.Placement)
		for _, part := range v.Placement.Parts {
			if q := f.Queue(part.Unit); v.Class == gpu.Batch {
				q.Running--
				f.SetQueue(part.Unit, q)
			}
		}
	}
	c.resize(f)
	return f
}

// evict has the victims of a new claim go, and holds for it what is free now.
func (c *Core) evict(heir *Claim, p plan, e Evicted) {
	heir.victims, heir.awaited, heir.Placement = slices.Clone(p.victims), p.placement, gpu.Placement{}
	for _, v := range p.victims {
		v.heir = heir
	}
	c.reserve(heir, 1)
	reason := fmt.Sprintf("preempted by %v", heir.For(e))
	for _, v := range p.victims {
		if v.State == Exited { // no process of it is left: the news of its end stays
			v.ending = reason
			c.giveBack(v)
			c.wake = min(c.wake, v.due(c.opt.KeepExits))
			continue
		}
		c.finish(v, Preempted, false, reason)
	}
}

// For says who a claim is for, and why others have to go.
func (c *Claim) For(e Evicted) string {
	text := fmt.Sprintf("a task of %s (%v)", c.Owner, c.About.Band)
	if e.Job != "" {
		text = fmt.Sprintf("job %s of %s (%v)", e.Job, c.Owner, c.About.Band)
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// reserve takes what an heir gets of what is free now, or gives that back.
func (c *Core) reserve(heir *Claim, by int) {
	if by > 0 {
		held := make([]gpu.Placement, 0, len(heir.victims))
		for _, v := range heir.victims {
			held = append(held, v.Placement)
		}
		heir.reserved, heir.later = gpu.Cover(heir.awaited, held)
		c.free.Take(heir.reserved)
	} else {
		c.free.Give(heir.reserved)
		heir.reserved, heir.later = gpu.Placement{}, gpu.Placement{}
	}
	for _, part := range heir.awaited.Parts {
		if heir.Class == gpu.Batch {
			c.queues[part.Unit].running += by
		}
		c.refresh(part.Unit)
	}
	c.version++
}

// gone notes that a victim has given back what it held: its heir takes of that what it is to get, and has all when no victim is left.
func (c *Core) gone(victim *Claim) {
	heir := victim.heir
	if victim.heir = nil; heir == nil {
		return
	}
	c.reserve(heir, -1)
	heir.victims = slices.DeleteFunc(heir.victims, func(o *Claim) bool { return o == victim })
	if len(heir.victims) > 0 {
		c.reserve(heir, 1)
		return
	}
	heir.Placement, heir.awaited = heir.awaited, gpu.Placement{}
	c.take(heir)
	c.settle(heir)
}

// forsake is for an heir that is given up.
func (c *Core) forsake(heir *Claim) {
	if len(heir.victims) == 0 {
		return
	}
	c.reserve(heir, -1)
	for _, v := range heir.victims {
		v.heir = nil
	}
	heir.victims, heir.awaited = nil, gpu.Placement{}
	c.resize(c.free)
}
