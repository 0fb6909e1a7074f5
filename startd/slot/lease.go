package slot

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/plant"
)

// due is when the claim next needs something if nothing happens to it.
func (c *Claim) due(keep time.Duration) Instant {
	switch {
	case c.State == Vacating:
		return never // told already; its end is awaited
	case c.State == Exited && !c.holds && c.ending != "":
		return max(c.ended, c.Lease) + keep
	case c.State == Exited && c.vacant > 0:
		return min(c.vacant, c.Lease)
	default:
		return c.Lease
	}
}

// Renewal is what a schedd says to let its claims live on.
type Renewal struct {
	Heard uint64        // the number of the word that it had heard last
	Since time.Duration // from then until it sent this
	Lease time.Duration // 0: as long as each claim was made for
}

// Renewed takes a schedd's word on a session that all its claims live on for their leases, from when it sent that: by then it counts itself, and what is
// read late must not let an attempt outlive what its schedd believes. A lease that has run out stays so. It returns the number of the word that
// the schedd is to be told now.
func (c *Core) Renewed(now Instant, session uint64, schedd string, r Renewal) (word uint64, ok bool) {
	if !c.current(schedd, session) {
		return 0, false
	}
	s := c.sessions[schedd]
	sent := s.sent(now, r.Heard, r.Since)
	if plant.Is(plant.LateRenewal) {
		sent = now
	}
	for _, claim := range c.of(schedd) {
		if now < claim.Lease && (claim.holds || claim.ending == "") {
			was := claim.Lease
			if claim.Lease = sent + r.Lease; r.Lease <= 0 {
				claim.Lease = max(was, sent+claim.Period)
			}
			if plant.Is(plant.LeaseAdded) {
				claim.Lease = was + claim.Period
			}
			c.wake = min(c.wake, claim.due(c.opt.KeepExits))
			c.emit(Renew{claim})
		}
	}
	return s.say(now), true
}

// expire does what is due.
func (c *Core) expire(now Instant) {
	c.wake = never
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		claim := c.claims[id]
		if now >= claim.due(c.opt.KeepExits) {
			c.lapse(now, claim)
		}
		if claim.State != Gone {
			c.wake = min(c.wake, claim.due(c.opt.KeepExits))
		}
	}
}

// leaseOver is what people read when a lease has run out.
const leaseOver = "its lease ran out: the submit node was not heard of in time"

// roomGiven is what they read when a claim went because its attempt had ended while its schedd could not be reached.
const roomGiven = "its task had ended, and the submit node was not heard of for a while"

func (c *Core) lapse(now Instant, claim *Claim) {
	kept := claim.State == Exited && claim.ending == "" // its news outlives its lease
	claim.ending = leaseOver
	switch claim.State {
	case Making:
		claim.Lease = never // the end of the making is awaited
	case Idle:
		c.drop(claim, leaseOver)
	case Waiting:
		if !claim.queued() {
			c.drop(claim, leaseOver)
		} else {
			c.withdraw(claim, LeaseOut, leaseOver)
		}
	case Busy:
		c.vacate(claim, LeaseOut, true, leaseOver)
	case Exited:
		if kept {
			if now < claim.Lease {
				claim.ending = roomGiven
			}
			c.giveBack(claim)
			c.leave(claim)
		} else {
			c.drop(claim, "its exit was kept for "+c.opt.KeepExits.String()+" and nobody asked for it")
		}
	}
}
