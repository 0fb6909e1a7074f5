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

// ClaimController applies decisions to the processes of claims, without waiting for the
// result.
type ClaimController interface {
	// RunnerIDs lists the runners by the IDs of their claims, including claims that have
	// ended.
	RunnerIDs() []slot.ClaimID
	// HasRunner reports whether a claim has a runner.
	HasRunner(id slot.ClaimID) bool
	// SetSuspended freezes a claim, or thaws it if the reason is empty. Repeating it has
	// no effect.
	SetSuspended(id slot.ClaimID, why string)
	// Resume thaws a frozen claim and resumes its task.
	Resume(id slot.ClaimID)
	// ReportSuspended reports to the schedd of a claim that its task is frozen, or, with
	// an empty reason, running again.
	ReportSuspended(c *slot.Claim, why string)
	// TrimMemory makes a frozen claim return memory.
	TrimMemory(id slot.ClaimID)
	// Kill kills the processes of a claim without its starter.
	Kill(id slot.ClaimID)
	// TaskUsage returns the memory of the task on a claim, and whether it can be
	// checkpointed.
	TaskUsage(c *slot.Claim) (memory roost.Bytes, savable bool)
	// LogEffect logs an owner.LogTransition or an owner.LogPolicyError.
	LogEffect(o policy.Effect)
}

// PolicyEnforcer applies the owner policy of one machine. The startd's loop calls it.
type PolicyEnforcer struct {
	Owner *policy.PolicyCore

	name                string // of the machine
	claimTable          *slot.ClaimTable
	controller          ClaimController
	nextCheck           roost.BootTime          // latest time for the next evaluation of Owner
	claimsChanged       bool                    // claims have changed since the last evaluation
	observationsChanged bool                    // the guard has reported or was lost since the last evaluation
	synced              bool                    // claims frozen by an earlier start or by the guard were synced
	suspended           map[slot.ClaimID]string // claims that are to be frozen, with the reason
	killed              map[slot.ClaimID]bool   // claims that were told to end at once
	advertisedVersion   uint64                  // version of Owner in the last advertised ad
	unavailableReason   string                  // why the machine is not available to the pool; empty: it is
}

// New returns an enforcer for the machine of that name. The caller adopts the claims of
// an earlier start before the first Apply.
func New(name string, o *policy.PolicyCore, table *slot.ClaimTable, claims ClaimController) *PolicyEnforcer {
	return &PolicyEnforcer{Owner: o, name: name, claimTable: table, controller: claims,
		suspended: map[slot.ClaimID]string{}, killed: map[slot.ClaimID]bool{}, claimsChanged: true}
}

// Observe processes a report of the guard. Froze means that the guard has frozen claims
// itself: they are synced like those of an earlier start.
func (l *PolicyEnforcer) Observe(now roost.BootTime, wall time.Time, s policy.GuardObservations, froze bool) {
	if froze {
		l.synced = false
	}
	l.observationsChanged = true
	l.Owner.Observe(now, wall, s)
}

// GuardLost records that the guard does not report any more.
func (l *PolicyEnforcer) GuardLost(now roost.BootTime) {
	if mutant.Active(mutant.IgnoresLostGuard) {
		return
	}
	l.Owner.GuardLost(now)
	l.observationsChanged = true
}

// SetRules sets the rules of the owner's file, or the error of reading it.
func (l *PolicyEnforcer) SetRules(now roost.BootTime, r policy.DesktopRules, err error) {
	l.Owner.SetRules(now, r, err)
	l.nextCheck = 0 // evaluate the policy at the next Apply
}

// OnEffect observes each effect of the claim table.
func (l *PolicyEnforcer) OnEffect(effect slot.Effect) {
	switch effect.(type) {
	case slot.CreateClaim, slot.RecordPlacement, slot.StartAttempt, slot.ReportStarted, slot.ReportExited,
		slot.RemoveClaim:
		l.claimsChanged = true
	}
}

// ClaimsChanged reports whether claims have changed since the last Apply. Then another
// one is due.
func (l *PolicyEnforcer) ClaimsChanged() bool { return l.claimsChanged }

// SuspendReason returns why a claim is to be frozen, or "" if it is not.
func (l *PolicyEnforcer) SuspendReason(id slot.ClaimID) string { return l.suspended[id] }

// Suspended returns the claims that are to be frozen, in no order.
func (l *PolicyEnforcer) Suspended() map[slot.ClaimID]string { return l.suspended }

// UnavailableReason returns why the machine is not available to the pool, or "" if it is.
func (l *PolicyEnforcer) UnavailableReason() string { return l.unavailableReason }

// Describe writes the owner's state into the machine's ad. IsAdStale reports whether it
// has changed since.
func (l *PolicyEnforcer) Describe(ad *classad.Ad) {
	l.Owner.Describe(ad)
	l.advertisedVersion = l.Owner.Version()
}

// IsAdStale reports whether the machine's ad must be rebuilt.
func (l *PolicyEnforcer) IsAdStale() bool { return l.Owner.Version() != l.advertisedVersion }

// RejectionReason returns why the owner policy rejects a job, or nil if it accepts it.
// Whether the machine is available at all is checked by the claim table. The error is a
// roost.Conflict.
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

// publicReason converts the reason for the unavailability to a text for other machines.
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
