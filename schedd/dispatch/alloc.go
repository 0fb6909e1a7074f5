package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// Tasks inside an alloc are placed here, and not by the negotiator: the alloc is a claim
// that this schedd holds, whose own task does nothing. The startd is asked for a claim
// inside it, which then goes through the states of any other. This side counts what is
// left of an alloc so as not to ask in vain; the startd has the last word.

// InsideAllocs are the allocs inside which the ready tasks of a request could run.
type InsideAllocs struct {
	Allocs    []roost.TaskID // the open alloc of each ready task; or with Anywhere all that are open
	Anywhere  bool
	Resources roost.Resources
}

// insideDelay is how long an alloc is not asked again for what its machine has refused.
const insideDelay = time.Second

// insideRefusal is what a machine said when it was asked for a claim inside an alloc.
type insideRefusal struct {
	until  roost.BootTime
	reason string
}

// insideClaims is what the dispatcher knows of claims inside allocs.
type insideClaims struct {
	number  uint64                         // of the last that was asked for
	woken   map[uint64]bool                // alloc sets that may have room again
	delayed map[roost.TaskID]insideRefusal // allocs that are not asked now
}

func newInsideClaims() insideClaims {
	return insideClaims{woken: make(map[uint64]bool), delayed: make(map[roost.TaskID]insideRefusal)}
}

// isInside reports whether the claim is inside an alloc.
func (c *Claim) isInside() bool { return !c.alloc.Job.IsZero() }

// allocPlacement is the part of the dispatcher that makes claims inside allocs.
type allocPlacement struct{ *Dispatcher }

// allocsOf returns the dispatcher as far as it makes claims inside allocs.
func allocsOf(d *Dispatcher) allocPlacement { return allocPlacement{d} }

// TakeWokenAllocs drains the numbers of the alloc sets that may have room again for what
// is to be inside.
func TakeWokenAllocs(d *Dispatcher) []uint64 {
	if len(d.inside.woken) == 0 {
		return nil
	}
	all := slices.Sorted(maps.Keys(d.inside.woken))
	clear(d.inside.woken)
	return all
}

// AllocRefusal says why the machine of an alloc has refused what was to be inside; empty
// if it has not.
func AllocRefusal(d *Dispatcher, alloc roost.TaskID) string { return d.inside.delayed[alloc].reason }

// AllocRoom returns what is left of an alloc; false if it is not open, or its machine
// does not answer.
func AllocRoom(d *Dispatcher, alloc roost.TaskID) (left roost.Resources, open bool) {
	c := allocsOf(d).openClaim(alloc)
	if c == nil {
		return left, false
	}
	return allocsOf(d).room(c), true
}

// openClaim returns the claim of an alloc that tasks may be put into; nil for none.
func (d allocPlacement) openClaim(alloc roost.TaskID) *Claim {
	c := d.busy[alloc]
	if c == nil || c.State != Busy || !c.Running || c.vacating || !d.nodes[c.Node].connected {
		return nil
	}
	return c
}

// room is what the claims inside an alloc leave of it. GPUs are left to the machine,
// which knows what is shared.
func (d allocPlacement) room(alloc *Claim) roost.Resources {
	left := alloc.Resources
	if mutant.Active(mutant.AllocUncounted) {
		return left
	}
	d.eachInside(alloc, func(c *Claim) {
		gpus := left.GPUs
		left = left.Sub(c.Resources)
		left.GPUs = gpus
	})
	return left
}

// isHolder reports whether a claim is inside the claim of an alloc. Machines number their
// claims each on its own.
func isHolder(alloc, c *Claim) bool {
	return alloc != nil && alloc.Node == c.Node && alloc.ID == c.Grant.Alloc
}

// isTooMuch reports whether an alloc has become smaller than what is inside, this claim
// included. Its machine has let it while what was inside had ended there, and lends that
// again only as far as there is room.
func (d allocPlacement) isTooMuch(c *Claim) bool {
	holder := d.busy[c.alloc]
	return c.isInside() && isHolder(holder, c) && d.room(holder).IsNegative()
}

// eachInside calls f with the claims inside an alloc, those that are only asked for
// included.
func (d allocPlacement) eachInside(alloc *Claim, f func(*Claim)) {
	n := d.nodes[alloc.Node]
	for _, c := range n.claims {
		if c.alloc == alloc.Attempt.Task && c.Grant.Alloc == alloc.ID {
			f(c)
		}
	}
	for _, c := range n.requested {
		if c.alloc == alloc.Attempt.Task && c.Grant.Alloc == alloc.ID {
			f(c)
		}
	}
}

// nodeAnswers notes that a node answers again, which may have allocs.
func (d allocPlacement) nodeAnswers(n *nodeState) {
	for _, c := range n.claims {
		if c.State == Busy && c.Running {
			d.inside.woken[c.Attempt.Task.Job.Seq] = true
		}
	}
}

// place puts the ready tasks of a request on idle claims inside their allocs, and asks
// for more such claims.
func (d allocPlacement) place(now roost.BootTime, r RequestID, want InsideAllocs) {
	for _, c := range slices.Clone(d.idle[r]) {
		if d.jobQueue.ReadyTasks(r) > 0 && c.State == Idle {
			d.assignNext(now, c)
		}
	}
	missing := d.jobQueue.ReadyTasks(r) - d.unanswered[r]
	for _, alloc := range want.Allocs {
		if missing <= 0 {
			return
		}
		holder := d.openClaim(alloc)
		if _, delayed := d.inside.delayed[alloc]; holder == nil || delayed {
			continue
		}
		if d.isUnavailable(now, holder) {
			d.refused(now, alloc, "its machine is drained, or reserved for others")
			continue
		}
		wanted := 1
		if d.hasRequest(holder, r) {
			wanted = 0
		}
		if want.Anywhere {
			wanted = missing
		}
		for ; wanted > 0 && missing > 0 && want.Resources.FitsIn(d.room(holder)); wanted-- {
			d.ask(now, r, holder, want.Resources)
			missing--
		}
	}
}

// hasRequest reports whether a claim for a request is inside an alloc, or asked for.
func (d allocPlacement) hasRequest(alloc *Claim, r RequestID) (found bool) {
	d.eachInside(alloc, func(c *Claim) { found = found || c.Request == r })
	return found
}

// ask asks the machine of an alloc for a claim inside it. The number of the grant is this
// schedd's own, and no one before has had it since the machine started.
func (d allocPlacement) ask(now roost.BootTime, r RequestID, alloc *Claim, resources roost.Resources) {
	n := d.nodes[alloc.Node]
	d.inside.number = max(d.inside.number+1, uint64(now))
	g := Grant{GrantID: roost.GrantID{ID: d.inside.number}, Request: r, Node: alloc.Node, Address: n.address,
		Resources: resources, Alloc: alloc.ID}
	c := &Claim{
		Node: g.Node, Grant: g, Request: r, Resources: resources, State: Requested,
		Lease: min(d.jobQueue.Lease(r), alloc.Lease), stateSince: now, leaseSent: now, alloc: alloc.Attempt.Task,
	}
	c.silence = d.jobQueue.SilenceRules(r)
	d.requested[g.GrantID], n.requested[g.GrantID] = c, c
	d.unanswered[r]++
	d.deadlines().noteAdded(n, c)
	d.requestClaim(now, n, c)
}

// assign returns what puts the next task on a claim inside an alloc. A claim may be left
// from before the alloc moved, while its machine is silent; nothing starts on it.
func (d allocPlacement) assign(c *Claim) func(RequestID, string, string, uint64) (roost.AttemptID, bool) {
	return func(r RequestID, node, address string, claim uint64) (roost.AttemptID, bool) {
		if !isHolder(d.busy[c.alloc], c) {
			return roost.AttemptID{}, false
		}
		return d.jobQueue.AssignInside(r, c.alloc, node, address, claim)
	}
}

// refused notes that a machine gave no claim inside an alloc. It is asked again later.
func (d allocPlacement) refused(now roost.BootTime, alloc roost.TaskID, reason string) {
	d.inside.delayed[alloc] = insideRefusal{now + insideDelay, reason}
}

// endDelays has allocs asked again.
func (d allocPlacement) endDelays(now roost.BootTime) {
	for alloc, refusal := range d.inside.delayed {
		if now >= refusal.until {
			delete(d.inside.delayed, alloc)
			d.inside.woken[alloc.Job.Seq] = true
		}
	}
}

// noteGone notes that a claim has gone, which may leave room in its alloc.
func (d allocPlacement) noteGone(c *Claim) {
	if c.isInside() {
		d.inside.woken[c.alloc.Job.Seq] = true
	}
}

// check panics when claims inside an alloc have more than it has. One that became smaller
// may have less than that for a while: only its machine knows what has ended inside.
func (d allocPlacement) check() {
	d.EachClaim(func(c *Claim) {
		if c.isInside() != (c.Grant.Alloc != 0) && !c.adopted {
			panic(fmt.Sprintf("dispatch: %v is inside %v by claim %d", c, c.alloc, c.Grant.Alloc))
		}
		if holder := d.busy[c.alloc]; c.isInside() && isHolder(holder, c) && !holder.shrunk && !holder.adopted {
			if left := d.room(holder); left.IsNegative() {
				panic(fmt.Sprintf("dispatch: %v is inside %v, which has %v left", c, holder, left))
			}
		}
	})
}
