package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/plant"
)

// Adopted enters a claim that was here before the startd: as written down, with what its starter says. Its state is Idle, Busy or Exited. Claims
// on which an attempt runs go first: one on which nothing runs may have passed its resources on to them, and waits again if it may. Those that
// waited stand in the order in which they are entered; what waited with them the schedd sends again.
func (c *Core) Adopted(now Instant, claim Claim) error {
	if claim.ID >= c.nextID || c.claims[claim.ID] != nil {
		return fmt.Errorf("claim %d: %w: it does not fit this machine", claim.ID, roost.Invalid)
	}
	if claim.State != Idle && claim.State != Busy && claim.State != Exited || claim.State != Idle && c.tasks[claim.Attempt.Task] != nil {
		return fmt.Errorf("claim %d: %w: it is %v", claim.ID, roost.Invalid, claim.State)
	}
	own := claim
	own.queue = nowhere
	if own.Placement.Zero() && !own.MayWait { // written down by a startd that knew of no placements
		c.free.Find(own.request(), gpu.Anywhere, &own.Placement)
	}
	holds := !own.Placement.Zero() && c.free.Fits(own.Placement)
	unit, waits := nowhere, false
	if !holds && own.MayWait && own.State != Busy {
		unit, waits = c.home(own.request())
	}
	switch {
	case holds || waits || own.State == Busy && own.Over:
	case own.State != Exited:
		return fmt.Errorf("claim %d: %w", own.ID, c.free.Why(own.request()))
	default:
		own.ending = "the machine has become smaller"
	}
	c.now, c.begun = now, now
	own.text = c.adBytes(&own)
	c.enter(&own)
	switch {
	case holds && plant.Is(plant.ForgottenRoom):
	case holds:
		c.take(&own)
	case waits:
		own.Placement = gpu.Placement{}
		if c.join(&own, unit); own.State == Idle {
			own.State = Waiting
		}
	}
	if own.State != Idle && own.State != Waiting {
		c.tasks[own.Attempt.Task] = &own
		own.ended = now
		if own.Began == 0 {
			own.Began = now
		}
		s := c.sessions[own.Schedd]
		if s == nil {
			s = &session{fence: newFence()}
			c.sessions[own.Schedd] = s
		}
		s.fence.pass(own.Attempt)
	}
	c.version++
	c.wake = min(c.wake, own.due(c.opt.KeepExits))
	if !c.heard(own.Schedd) {
		c.orphan(&own)
	}
	return nil
}

// home is a unit that a request would fit into alone.
func (c *Core) home(r gpu.Request) (unit int, ok bool) {
	f := c.free.Clone()
	for i := range c.queues {
		f.SetQueue(i, gpu.Queue{Room: 1, Wait: float64(len(c.queues[i].claims))})
	}
	return f.CanWait(r)
}

// Devices takes in how the machine's devices are. What claims have of them they keep; a device that is sick, or is not in the list, is
// given to nobody until it is well and there again. It returns those that were not here at the start: they need a restart.
func (c *Core) Devices(now Instant, all []gpu.Device) (unknown []string) {
	c.now = now
	health := make(map[string]gpu.Health, len(all))
	for _, d := range all {
		health[d.UUID] = d.Health
	}
	for _, d := range c.free.Devices() {
		h, ok := health[d.UUID]
		if !ok {
			h = gpu.Sick("it is not there any more")
		}
		if c.free.SetHealth(d.UUID, h) {
			c.version++
		}
		delete(health, d.UUID)
	}
	for _, d := range all {
		delete(health, d.Parent) // a card that is cut into instances is none
	}
	for _, d := range all {
		if _, ok := health[d.UUID]; ok {
			unknown = append(unknown, d.UUID)
		}
	}
	return unknown
}
