package slot

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// nextDeadline is when the claim next needs something if nothing happens to it.
func (c *Claim) nextDeadline(retention time.Duration) roost.BootTime {
	switch {
	case c.State == Vacating:
		return noDeadline // told already; its end is awaited
	case c.State == Exited && !c.hasPlacement && c.endReason != "":
		return max(c.exitedAt, c.Lease) + retention
	case c.State == Exited && c.releaseAt > 0:
		return min(c.releaseAt, c.Lease)
	default:
		return c.Lease
	}
}

// LeaseRenewal is what a schedd says to let its claims live on.
type LeaseRenewal struct {
	LastHeard uint64        // the number of the word that it had heard last
	Since     time.Duration // from then until it sent this
	Lease     time.Duration // 0: as long as each claim was made for
}

// leases is the claim table as far as claims end with their leases.
type leases struct{ *ClaimTable }

func (c *ClaimTable) leases() leases { return leases{c} }

// RenewClaims renews the leases of all claims of a schedd, as it asked in a session. The
// leases count from when the schedd sent that, because the schedd counts from then: what
// is read late must not let an attempt outlive what its schedd believes. A lease that has
// expired stays expired. RenewClaims returns the number of the sentMark that the schedd
// is to get now.
func (c *ClaimTable) RenewClaims(now roost.BootTime, session uint64, schedd string,
	r LeaseRenewal) (word uint64, ok bool) {
	if !c.sessions.isCurrent(schedd, session) {
		return 0, false
	}
	s := c.sessions[schedd]
	sent := s.sentTime(now, r.LastHeard, r.Since)
	if mutant.Active(mutant.RenewalCountedOnReceipt) {
		sent = now
	}
	for _, claim := range c.claims.ofSchedd(schedd) {
		if now < claim.Lease && (claim.hasPlacement || claim.endReason == "") {
			was := claim.Lease
			if claim.Lease = sent + r.Lease; r.Lease <= 0 {
				claim.Lease = max(was, sent+claim.LeasePeriod)
			}
			if mutant.Active(mutant.LeaseAdded) {
				claim.Lease = was + claim.LeasePeriod
			}
			c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
			c.addEffect(RenewLease{claim})
		}
	}
	return s.addSentMark(now), true
}

// handleDeadlines does what is due.
func (c leases) handleDeadlines(now roost.BootTime) {
	c.nextDeadline = noDeadline
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		claim := c.claims[id]
		if claim == nil {
			continue // it was inside an alloc whose lease is over
		}
		if now >= claim.nextDeadline(c.opt.ExitRetention) {
			c.expireLease(now, claim)
		}
		if claim.State != Gone {
			c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
		}
	}
}

// leaseOverReason is what people read when a lease has run out.
const leaseOverReason = "its lease ran out: the submit node was not heard of in time"

// roomGivenReason is what people read when a claim went while its schedd could not be
// reached. The claim's attempt had ended.
const roomGivenReason = "its task had ended, and the submit node was not heard of for a while"

func (c leases) expireLease(now roost.BootTime, claim *Claim) {
	unreported := claim.State == Exited && claim.endReason == "" // its news outlives its lease
	claim.endReason = leaseOverReason
	switch claim.State {
	case Creating:
		claim.Lease = noDeadline // the end of the making is awaited
	case Idle:
		c.dropClaim(claim, leaseOverReason)
	case Waiting:
		if !claim.hasQueuedAttempt() {
			c.dropClaim(claim, leaseOverReason)
		} else {
			c.nodeQueues().cancelQueued(claim, LeaseOut, leaseOverReason)
		}
	case Busy:
		c.vacateAttempt(claim, LeaseOut, true, leaseOverReason)
	case Exited:
		if unreported {
			if now < claim.Lease {
				claim.endReason = roomGivenReason
			}
			c.releaseResources(claim)
			c.nodeQueues().leaveQueue(claim)
		} else {
			c.dropClaim(claim, "its exit was kept for "+c.opt.ExitRetention.String()+" and nobody asked for it")
		}
	}
}
