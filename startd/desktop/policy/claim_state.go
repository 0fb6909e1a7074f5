package policy

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// PolicyClaim is a claim on the machine as the claim table has it.
type PolicyClaim struct {
	ID             uint64         // above 0
	Job            *classad.Ad    // attributes of the running job, as far as known; nil: no job
	AttemptStarted roost.BootTime // start time of the current attempt; another time means another attempt
	GPUs           int
	Memory         roost.Bytes // in use
	Running        bool        // processes of an attempt exist, or are about to
	CanCheckpoint  bool        // it can be checkpointed when it is vacated
	Frozen         bool        // for a claim from before the startd's start: its task is frozen for the owner
}

// claimState is the policy's state of one claim.
type claimState struct {
	PolicyClaim
	activity        ClaimActivity
	since           roost.BootTime // start of the activity
	claimedAt       roost.BootTime // when the claim was first seen
	vacateAt        roost.BootTime // when it was told to vacate
	frozen          bool           // its task was told to freeze, and not to resume since
	frozenSince     roost.BootTime // when it was frozen
	vacatingFrozen  bool           // Vacating: it was vacated while frozen, and must not run again
	gpusFreed       bool           // its GPUs were taken since frozenSince
	memoryTrimmedAt roost.BootTime // when it last returned memory since frozenSince; 0: not yet
	unevaluated     bool           // its attempt was not evaluated yet
	unusableSince   roost.BootTime // Idle: since when no task could run on it; 0: one could
	retireBy        roost.BootTime // when it is vacated unless it has ended; 0: it need not be
	lastKill        roost.BootTime // Killing: time of the last kill
	reason          string         // why it is frozen or vacated
}

func (t *claimState) state() MachineState {
	if t.activity >= Vacating {
		return Preempting
	}
	return Claimed
}

func (t *claimState) stateText() string { return t.state().String() + "/" + t.activity.String() }

// SetClaims sets the claims of the machine. It is called whenever they change.
func (c *PolicyCore) SetClaims(now roost.BootTime, all []PolicyClaim) {
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

// updateClaim applies changes of a known claim.
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
