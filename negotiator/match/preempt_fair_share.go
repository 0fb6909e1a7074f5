package match

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// FairSharePreemption lets batch preempt batch. The victim's submitter must have a worse
// effective priority, its task must have run for a minimum time, and the administrator's
// expression must allow it. The expression is evaluated like HTCondor's
// PREEMPTION_REQUIREMENTS: MY is the machine with the claim, TARGET the request. Any
// result but true denies. MY has, beside the machine's attributes,
//
//	RemoteOwner, RemoteGroup, RemoteUserPrio (effective), RemoteJobId  of the claim
//	SubmitterGroup, SubmitterUserPrio (effective)  of the preempting submitter
//	TotalJobRunTime (seconds), LostWork (seconds)  of the claim's task
//	JobCheckpoint  whether the task can be checkpointed
type FairSharePreemption struct {
	Allows     classad.Expr
	MinRuntime time.Duration // least run time of a task before it may be preempted
}

// fairShareMargin is the factor by which the preempting submitter's effective priority
// must be better. It applies whatever the expression says; 1.2 is HTCondor's usual value.
// With less, two submitters of about the same priority would preempt each other in turn.
const fairShareMargin = 1.2

// preemptsByFairShare reports whether fair share lets a request preempt a claim of its
// own band. A task that cannot be run again is never preempted for fair share.
func (p preemptionPlanner) preemptsByFairShare(w *requestState, m *Machine, c *MachineClaim) bool {
	f := p.Preemption.FairShare
	if f == nil || c.losesTask() || c.Submitter == w.Submitter || c.TaskStarted == 0 ||
		p.now-c.TaskStarted < int64(f.MinRuntime/time.Second) {
		return false
	}
	mine, theirs := w.submitter.priorityIn(w.Band), p.fairShares().submitterState(c.Submitter).priorityIn(c.Band)
	if theirs < fairShareMargin*mine {
		return false
	}
	ad := m.Ad.Copy()
	ad.SetString("RemoteOwner", c.Submitter.Owner)
	ad.SetString("RemoteGroup", c.Submitter.Group)
	ad.SetReal("RemoteUserPrio", theirs)
	ad.SetString("RemoteJobId", c.Job)
	ad.SetString("SubmitterGroup", w.Submitter.Group)
	ad.SetReal("SubmitterUserPrio", mine)
	ad.SetInt("TotalJobRunTime", p.now-c.TaskStarted)
	ad.SetInt("LostWork", c.lostWork(p.now))
	ad.SetBool("JobCheckpoint", c.Checkpointable)
	ok, isBool := classad.Eval(f.Allows, ad, w.Class.Ad, &p.env).Truth()
	return ok && isBool
}

// noPreemptionReason says in a few words why a waiting request does not preempt; empty if
// that is obvious.
func (p preemptionPlanner) noPreemptionReason(w *requestState) string {
	h := &w.preemption
	switch {
	case h.awaitingVictims > 0 && h.awaitingVictims == w.unitsLeft:
		return "; room is being made for it"
	case h.awaitingVictims > 0:
		return fmt.Sprintf("; room is being made for %d of %d", h.awaitingVictims, w.unitsLeft)
	case !h.failed:
		return ""
	case p.cycleBudgetUsed():
		return fmt.Sprintf("; the limit of tasks displaced in an hour is reached (%d in this cycle)",
			p.evictedCount)
	case w.Band.IsProd() && p.hasProdClaim():
		return "; no task below production has what it needs, and production is never displaced"
	}
	return p.noPriorityReason(w)
}

// hasProdClaim reports whether some machine has a claim of prod.
func (p preemptionPlanner) hasProdClaim() bool {
	for _, m := range p.Machines {
		for i := range m.Claims {
			if m.Claims[i].Band >= roost.ProductionBand {
				return true
			}
		}
	}
	return false
}
