package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/mutant"
)

// Adopt enters a claim that was here before the startd: as written down, with what its
// starter says. Its state is Idle, Busy or Exited. Claims on which an attempt runs go
// first: one on which nothing runs may have passed its resources on to them, and waits
// again if it may. Those that waited stand in the order in which they are entered; what
// waited with them the schedd sends again.
func (c *ClaimTable) Adopt(now roost.BootTime, claim Claim) error {
	if claim.ID >= c.ids.next || c.claims[claim.ID] != nil {
		return fmt.Errorf("claim %d: %w: it does not fit this machine", claim.ID, roost.Invalid)
	}
	if claim.State != Idle && claim.State != Busy && claim.State != Exited ||
		claim.State != Idle && c.tasks[claim.Attempt.Task] != nil {
		return fmt.Errorf("claim %d: %w: it is %v", claim.ID, roost.Invalid, claim.State)
	}
	own := claim
	own.queue = nowhere
	if own.Placement.Zero() && !own.CanQueue && own.Inside == 0 { // written down by a startd that knew of no placements
		c.free.FindPlacement(own.request(), gpu.AnyUnit, &own.Placement)
	}
	holds := !own.Placement.Zero() && c.free.CanTake(own.Placement)
	if own.Inside != 0 {
		var err error
		if holds, err = allocsOf(c).adoptInside(&own); err != nil {
			return err
		}
	}
	unit, waits := nowhere, false
	if !holds && own.CanQueue && own.State != Busy {
		unit, waits = c.nodeQueues().unitFor(own.request())
	}
	switch {
	case holds || waits || own.State == Busy && own.ProcessesGone:
	case own.State != Exited:
		return fmt.Errorf("claim %d: %w", own.ID, c.free.WhyNotNow(own.request()))
	default:
		own.endReason = "the machine has become smaller"
	}
	c.now, c.adoptedStart = now, now
	if own.Inside == 0 {
		own.adBytes = own.maxAdBytes()
	}
	c.addClaim(&own)
	PortsOf(c).adopt(&own)
	switch {
	case holds && mutant.Active(mutant.RoomForgottenOnRestart):
	case holds:
		c.takeResources(&own)
	case waits:
		own.Placement = gpu.Placement{}
		if c.nodeQueues().joinQueue(&own, unit); own.State == Idle {
			own.State = Waiting
		}
	}
	if own.State != Idle && own.State != Waiting {
		c.tasks[own.Attempt.Task] = &own
		own.exitedAt = now
		if own.RunningSince == 0 {
			own.RunningSince = now
		}
		s, _ := c.sessions.find(own.Schedd)
		s.fence.advance(own.Attempt)
	}
	c.version++
	c.nextDeadline = min(c.nextDeadline, own.nextDeadline(c.opt.ExitRetention))
	if !c.sessions.has(own.Schedd) {
		c.leases().shortenLease(&own)
	}
	return nil
}

// unitFor is a unit that a request would fit into alone.
func (c nodeQueues) unitFor(r gpu.DeviceRequest) (unit int, ok bool) {
	f := c.free.Clone()
	for i := range c.queues {
		f.SetQueue(i, gpu.UnitQueue{FreePlaces: 1, WaitSeconds: float64(len(c.queues[i].claims))})
	}
	return f.QueueableUnit(r)
}

// SetDevices takes in how the machine's devices are. What claims have of them they keep;
// a device that is sick, or is not in the list, is given to nobody until it is well and
// there again. It returns those that were not here at the start: they need a restart.
func (c *ClaimTable) SetDevices(now roost.BootTime, all []gpu.Device) (unknown []string) {
	c.now = now
	health := make(map[string]gpu.DeviceHealth, len(all))
	for _, d := range all {
		health[d.UUID] = d.Health
	}
	for _, d := range c.free.Devices() {
		h, ok := health[d.UUID]
		if !ok {
			h = gpu.Unhealthy("it is not there any more")
		}
		if c.free.SetHealth(d.UUID, h) {
			c.version++
		}
		delete(health, d.UUID)
	}
	for _, d := range all {
		delete(health, d.ParentUUID) // a card that is cut into instances is none
	}
	for _, d := range all {
		if _, ok := health[d.UUID]; ok {
			unknown = append(unknown, d.UUID)
		}
	}
	return unknown
}
