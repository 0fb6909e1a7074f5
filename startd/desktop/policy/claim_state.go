package policy

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// PolicyClaim is a claim on the machine, as the books have it.
type PolicyClaim struct {
	ID             uint64      // above 0
	Job            *classad.Ad // of what runs on it, as far as it is known; nil: nothing is
	AttemptStarted BootTime    // when its present attempt did; another instant is another attempt
	GPUs           int
	Memory         roost.Bytes // in use
	Running        bool        // processes of an attempt live, or are about to
	CanCheckpoint  bool        // it can be saved when it has to leave
	Frozen         bool        // of a claim that was here before the startd: its task stands still for the owner's sake
}

// claimState is what the core makes of one.
type claimState struct {
	PolicyClaim
	activity        ClaimActivity
	since           BootTime // of the activity
	claimedAt       BootTime // when the claim was first seen
	vacateAt        BootTime // when it was told to leave
	frozen          bool     // its task was told to stand still, and not to go on since
	frozenSince     BootTime // since when
	vacatingFrozen  bool     // Vacating: it was told to leave as it stood, and must not run again
	gpusFreed       bool     // since then: its GPUs were taken
	memoryTrimmedAt BootTime // since then: when it last gave memory back; 0: not yet
	unevaluated     bool     // its attempt was not weighed yet
	unusableSince   BootTime // Idle: since when nothing could run on it; 0: something could
	retireBy        BootTime // when it leaves, if it has not ended by then; 0: it does not have to
	lastKill        BootTime // Killing: the last blow
	reason          string   // why it stands still or leaves
}

func (t *claimState) state() MachineState {
	if t.activity >= Vacating {
		return Preempting
	}
	return Claimed
}

func (t *claimState) stateText() string { return t.state().String() + "/" + t.activity.String() }

// SetClaims takes in the claims of the machine, whenever they change.
func (c *PolicyCore) SetClaims(now BootTime, all []PolicyClaim) {
	c.advanceTo(now)
	before := c.claims
	c.claims = make([]*claimState, 0, len(all))
	for _, given := range all {
		i, ok := slices.BinarySearchFunc(before, given.ID, byID)
		t := &claimState{claimedAt: now, since: now, unevaluated: true}
		if ok {
			t = before[i]
		}
		c.updateClaim(t, given)
		if !ok && given.Running && given.Frozen {
			t.frozen, t.frozenSince, t.reason = true, now, "it stood still before"
			c.setActivity(t, Suspended, t.reason)
		}
		c.claims = append(c.claims, t)
	}
	slices.SortFunc(c.claims, func(a, b *claimState) int { return cmp.Compare(a.ID, b.ID) })
	c.updateMachineState("its claims changed")
}

func byID(t *claimState, id uint64) int { return cmp.Compare(t.ID, id) }

// updateClaim folds in what the books say of a claim that is known.
func (c *PolicyCore) updateClaim(t *claimState, given PolicyClaim) {
	another := given.Running && (!t.Running || given.AttemptStarted != t.AttemptStarted)
	ended := t.Running && !given.Running
	t.PolicyClaim = given
	if another {
		t.frozen, t.gpusFreed, t.memoryTrimmedAt, t.unevaluated = false, false, 0, true
	}
	switch {
	case t.activity >= Vacating:
	case ended && t.activity != Idle:
		t.frozen = false
		c.setActivity(t, Idle, "its task ended")
	case another && t.activity == Idle:
		c.setActivity(t, Busy, "a task starts")
	case another && t.activity == Suspended:
		c.setActivity(t, Busy, "another task starts")
	}
}
