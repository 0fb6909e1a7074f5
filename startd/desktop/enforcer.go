package desktop

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// ClaimController do to what is on claims what is decided here, without waiting for it.
type ClaimController interface {
	// RunnerIDs lists those that there are by the ids of their claims, those of claims
	// that are no more included.
	RunnerIDs() []slot.ClaimID
	// HasRunner reports whether there is somebody who does it, for a claim.
	HasRunner(id slot.ClaimID) bool
	// SetSuspended has a claim stand still from now on, or with an empty reason lets it
	// go on. Said again it does no harm.
	SetSuspended(id slot.ClaimID, why string)
	// Resume lets a claim go on that stood still, and tells it so.
	Resume(id slot.ClaimID)
	// ReportSuspended is for the schedd of a claim: its task stands still, or with an
	// empty reason does no more.
	ReportSuspended(c *slot.Claim, why string)
	// TrimMemory has a claim that stands still give memory back.
	TrimMemory(id slot.ClaimID)
	// Kill kills what is left of a claim, past its starter.
	Kill(id slot.ClaimID)
	// TaskUsage is what the task on a claim uses, and whether it can be saved.
	TaskUsage(c *slot.Claim) (memory roost.Bytes, savable bool)
	// LogEffect is for the log: an owner.LogTransition or an owner.LogPolicyError.
	LogEffect(o policy.Effect)
}

// PolicyEnforcer is what a startd knows of the owner of its machine. Its loop calls it.
type PolicyEnforcer struct {
	Owner *policy.PolicyCore

	name                string // the machine's
	claimTable          *slot.ClaimTable
	controller          ClaimController
	nextCheck           slot.BootTime           // when the owner's core wants to be asked again
	claimsChanged       bool                    // claims have changed since it was told of them
	observationsChanged bool                    // the guard has spoken since it was asked, or is lost
	synced              bool                    // what an earlier start, or the guard, has left standing was looked at
	suspended           map[slot.ClaimID]string // claims that stand still, and why
	killed              map[slot.ClaimID]bool   // claims that were told to end at once
	advertisedVersion   uint64                  // of the owner's core that was advertised
	unavailableReason   string                  // no claims are given; empty: they are
}

// New begins to follow the owner of a machine of that name. The claims of an earlier
// start are adopted before anything is attended to.
func New(name string, o *policy.PolicyCore, books *slot.ClaimTable, hands ClaimController) *PolicyEnforcer {
	return &PolicyEnforcer{Owner: o, name: name, claimTable: books, controller: hands,
		suspended: map[slot.ClaimID]string{}, killed: map[slot.ClaimID]bool{}, claimsChanged: true}
}

// Observe takes in what the guard sees. Froze says that it has stopped claims of ours
// itself: they are looked at as those that an earlier start has left.
func (l *PolicyEnforcer) Observe(now slot.BootTime, wall time.Time, s policy.GuardObservations, froze bool) {
	if froze {
		l.synced = false
	}
	l.observationsChanged = true
	l.Owner.Observe(now, wall, s)
}

// GuardLost notes that the guard is not heard of.
func (l *PolicyEnforcer) GuardLost(now slot.BootTime) {
	if mutant.Active(mutant.IgnoresLostGuard) {
		return
	}
	l.Owner.GuardLost(now)
	l.observationsChanged = true
}

// SetRules takes in the owner's own file, or why it cannot be read.
func (l *PolicyEnforcer) SetRules(now slot.BootTime, r policy.DesktopRules, err error) {
	l.Owner.SetRules(now, r, err)
	l.nextCheck = 0 // it is asked what follows
}

// OnEffect is told of each effect of the books.
func (l *PolicyEnforcer) OnEffect(effect slot.Effect) {
	switch effect.(type) {
	case slot.CreateClaim, slot.RecordPlacement, slot.StartAttempt, slot.ReportStarted, slot.ReportExited,
		slot.RemoveClaim:
		l.claimsChanged = true
	}
}

// ClaimsChanged reports whether claims have changed since the last Apply, so that there
// is to be another one.
func (l *PolicyEnforcer) ClaimsChanged() bool { return l.claimsChanged }

// SuspendReason says why a claim is to stand still; empty when it is not.
func (l *PolicyEnforcer) SuspendReason(id slot.ClaimID) string { return l.suspended[id] }

// Suspended is the claims that are to stand still, in no order.
func (l *PolicyEnforcer) Suspended() map[slot.ClaimID]string { return l.suspended }

// UnavailableReason says why no claims are given; empty when they are.
func (l *PolicyEnforcer) UnavailableReason() string { return l.unavailableReason }

// Describe writes into the machine's ad whose it is now, and News reports whether that is
// something else than was written last.
func (l *PolicyEnforcer) Describe(ad *classad.Ad) {
	l.Owner.Describe(ad)
	l.advertisedVersion = l.Owner.Version()
}

// IsAdStale reports whether the machine's ad is to be made anew.
func (l *PolicyEnforcer) IsAdStale() bool { return l.Owner.Version() != l.advertisedVersion }

// RejectionReason says why the policy of the machine does not take a job; nil when it
// does. Whether it takes any the books know. The error is of kind roost.Conflict.
func (l *PolicyEnforcer) RejectionReason(job *classad.Ad) error {
	if job == nil {
		job = classad.New()
	}
	if willing, _ := l.Owner.Available(); !willing {
		return nil
	}
	if ok, why := l.Owner.Accepts(job); !ok {
		return fmt.Errorf("%w: %s", roost.Conflict, why)
	}
	return nil
}

// publicReason says in words that mean something elsewhere why the machine is not lent.
func (l *PolicyEnforcer) publicReason(why string) string {
	const active = "its owner is active"
	switch rest, ok := strings.CutPrefix(why, active); {
	case why == "":
		return ""
	case ok:
		return "the owner of " + l.name + " is back" + rest
	}
	return l.name + " is not lent: " + why
}
