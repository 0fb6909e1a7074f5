package policy

import (
	"fmt"
	"slices"
)

// MachineState is what a machine is, as a whole.
type MachineState uint8

// The states (HTCondor manual, "Policy Configuration for Execution Points").
const (
	OwnerState MachineState = iota // it is its owner's, and nobody has a claim on it
	Unclaimed                      // it is lent, and nobody has a claim on it
	Claimed                        // somebody has
	Preempting                     // all claims leave
)

var stateNames = []string{"Owner", "Unclaimed", "Claimed", "Preempting"}

func (s MachineState) String() string { return stateNames[s] }

// ClaimActivity is what happens on a claim. A machine's is that of its claims together.
type ClaimActivity uint8

// The activities.
const (
	Idle      ClaimActivity = iota // nothing runs on it
	Busy                           // a task runs
	Suspended                      // one stands still
	Retiring                       // one is to leave and may still end by itself
	Vacating                       // one is leaving
	Killing                        // one that did not leave in time is ended
)

var activityNames = []string{"Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing"}

func (a ClaimActivity) String() string { return activityNames[a] }

// stateMoves and activityMoves are what may follow what.
var (
	stateMoves = [][]MachineState{
		OwnerState: {Unclaimed, Claimed},
		Unclaimed:  {OwnerState, Claimed},
		Claimed:    {OwnerState, Unclaimed, Preempting},
		Preempting: {OwnerState, Unclaimed, Claimed},
	}
	activityMoves = [][]ClaimActivity{
		Idle:      {Busy, Suspended, Vacating},
		Busy:      {Idle, Suspended, Retiring, Vacating},
		Suspended: {Idle, Busy, Vacating},
		Retiring:  {Idle, Busy, Suspended, Vacating},
		Vacating:  {Killing},
		Killing:   {},
	}
)

// setActivity is where claims change what happens on them.
func (c *PolicyCore) setActivity(t *claimState, to ClaimActivity, cause string) {
	if !slices.Contains(activityMoves[t.activity], to) {
		panic(fmt.Sprintf("claim %d: from %v to %v: %s", t.ID, t.activity, to, cause))
	}
	before := t.stateText()
	if to == Vacating {
		t.vacateAt = c.now
	}
	t.activity, t.since = to, c.now
	c.addEffect(LogTransition{t.ID, before, t.stateText(), cause})
}

// setMachineState is where the machine changes its state.
func (c *PolicyCore) setMachineState(to MachineState, activity ClaimActivity, cause string) {
	if to == c.state && activity == c.activity {
		return
	}
	if to != c.state && !slices.Contains(stateMoves[c.state], to) {
		panic(fmt.Sprintf("machine %s: from %v to %v: %s", c.options.Name, c.state, to, cause))
	}
	before := c.stateText()
	c.total[c.state][c.activity] += c.now - c.enteredActivity
	if to != c.state || (activity == Suspended) != (c.activity == Suspended) {
		c.version++
	}
	if to != c.state {
		c.enteredState = c.now
	}
	c.state, c.activity, c.enteredActivity = to, activity, c.now
	c.addEffect(LogTransition{0, before, c.stateText(), cause})
}

func (c *PolicyCore) stateText() string { return c.state.String() + "/" + c.activity.String() }
