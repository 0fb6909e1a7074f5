package slot

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/roost-batch/roost/gpu"
)

// Check panics when the books contradict themselves.
func (c *Core) Check() { c.check() }

// check panics when the books contradict themselves.
func (c *Core) check() {
	free, busy, waiting := c.free.Empty(), 0, 0
	running := make([]int, len(c.queues))
	described := 0
	for _, claim := range c.sorted() {
		c.checkClaim(claim)
		described += claim.text
		if claim.holds {
			free.Take(claim.Placement)
			for _, part := range claim.Placement.Parts {
				if claim.Class == 0 {
					running[part.Unit]++
				}
			}
		}
		if claim.About.Limits != "" && claim.queue != nowhere {
			panic(fmt.Sprintf("%v has licences that the ad says nothing of: it waits for unit %d", claim, claim.queue))
		}
		c.checkHeir(claim)
		free.Take(claim.reserved)
		if len(claim.victims) > 0 && claim.Class == gpu.Batch {
			for _, part := range claim.awaited.Parts {
				running[part.Unit]++
			}
		}
		if claim.live() || claim.State == Exited || claim.queued() {
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
		if got := c.free.Queue(unit); got.Length != len(q.claims) || got.Running != q.running || running[unit] != q.running {
			panic(fmt.Sprintf("unit %d: the free list has %+v, the queue %d claims, and %d run", unit, got, len(q.claims), running[unit]))
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
	if !free.Same(c.free) {
		panic(fmt.Sprintf("free is %v, and by the claims %v", c.free.Left(), free.Left()))
	}
	if described != c.described {
		panic(fmt.Sprintf("claims may take %d bytes of the ad, and %d are counted", described, c.described))
	}
	c.checkSizes()
}

// checkSizes panics when a unit is smaller than its owner lends, or larger while something of it is free.
func (c *Core) checkSizes() {
	for unit, bound := range c.bounds.each {
		u := c.free.Unit(unit)
		batch, stream := c.free.UnitFree(unit, gpu.Batch), c.free.UnitFree(unit, gpu.Stream)
		if u.CPU < bound.CPU || u.Memory < bound.Memory || u.CPU > bound.CPU && min(batch.CPU, stream.CPU) > 0 || u.Memory > bound.Memory && batch.Memory > 0 {
			panic(fmt.Sprintf("unit %d has %v and %v, free are %v, and lent %+v", unit, u.CPU, u.Memory, batch, bound))
		}
	}
}

// checkBounds panics when, with everything done that was to be, more is lent than the owner wants and not enough of those who have it go.
func (c *Core) checkBounds() {
	for unit, bound := range c.bounds.each {
		for _, class := range []gpu.Class{gpu.Batch, gpu.Stream} {
			over := c.free.Excess(unit, class, bound)
			for _, claim := range c.sorted() {
				if claim.ending == "" && claim.State != Vacating {
					continue
				}
				for _, p := range claim.owned() {
					if p.Unit == unit {
						over.Memory -= p.Memory
						if claim.Class == class {
							over.CPU -= p.CPU
						}
					}
				}
			}
			if over.CPU > 0 || over.Memory > 0 {
				panic(fmt.Sprintf("unit %d: %+v more has been given to class %v than is lent, and nobody goes", unit, over, class))
			}
		}
	}
}

// checkHeir holds what an heir has and gets against what its victims hold.
func (c *Core) checkHeir(claim *Claim) {
	if v := claim.heir; v != nil && (!claim.holds || claim.ending == "" || !slices.Contains(v.victims, claim)) {
		panic(fmt.Sprintf("%v makes room for %v; holds %v, ending %q", claim, v, claim.holds, claim.ending))
	}
	var held []gpu.Placement
	for _, v := range claim.victims {
		if v.heir != claim || claim.holds || claim.queue != nowhere {
			panic(fmt.Sprintf("%v waits for %v, whose heir is %v", claim, v, v.heir))
		}
		held = append(held, v.Placement)
	}
	if now, _ := gpu.Cover(claim.awaited, held); len(held) == 0 && !claim.reserved.Zero() || len(held) > 0 && !reflect.DeepEqual(now, claim.reserved) {
		panic(fmt.Sprintf("%v has %+v of %+v, while its victims hold %+v", claim, claim.reserved, claim.awaited, held))
	}
}

func (c *Core) checkClaim(claim *Claim) {
	if c.claims[claim.ID] != claim || claim.ID >= c.nextID || claim.State == Gone {
		panic(fmt.Sprintf("%v does not stand under its id, next is %d", claim, c.nextID))
	}
	in := claim.Waits()
	ok := true
	switch claim.State {
	case Making:
		ok = claim.holds != in
	case Idle, Busy, Vacating:
		ok = (claim.holds || claim.Over && claim.live()) && !in
	case Waiting:
		ok = !claim.holds && in
	case Exited: // it has passed its resources on, or they were taken when its lease was over
		ok = !(claim.holds && in) && (claim.holds || in || claim.ending != "")
	}
	if !ok {
		panic(fmt.Sprintf("%v: holds %v, waits %v, ending %q", claim, claim.holds, in, claim.ending))
	}
	if claim.About.Alone && claim.holds && c.holders() > 1 {
		panic(fmt.Sprintf("%v has the machine alone, with %d others", claim, c.holders()-1))
	}
	if claim.Placement.Reclaimed && claim.About.Band.Prod() {
		panic(fmt.Sprintf("%v: production in reclaimed room", claim))
	}
	if due := claim.due(c.opt.KeepExits); due < c.wake {
		panic(fmt.Sprintf("%v is due at %v, before the wake at %v", claim, due, c.wake))
	}
}

// checkRoom panics when, with everything done that was to be, more is reserved than there is and those in reclaimed room stay.
func (c *Core) checkRoom() {
	if !c.sampled {
		return
	}
	for unit := range c.free.Len() {
		short := -c.free.Room(unit, gpu.Batch).Memory
		for _, t := range c.inUnit(unit) {
			if t.Leaving {
				short -= t.Frees
			}
		}
		if short > 0 {
			panic(fmt.Sprintf("unit %d: %v more is reserved than there is, and nobody goes", unit, short))
		}
	}
}

// holders is how many claims have a part of the machine.
func (c *Core) holders() (n int) {
	for _, claim := range c.claims {
		if claim.holds {
			n++
		}
	}
	return n
}
