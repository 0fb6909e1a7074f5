package policy

import (
	"fmt"
	"slices"
)

// MachineState is the state of a machine as a whole.
type MachineState uint8

// The states (HTCondor manual, "Policy Configuration for Execution Points").
const (
	OwnerState MachineState = iota // it belongs to its owner, without claims
	Unclaimed                      // it is available, without claims
	Claimed                        // it has claims
	Preempting                     // all claims are being vacated
)

var stateNames = []string{"Owner", "Unclaimed", "Claimed", "Preempting"}

func (s MachineState) String() string { return stateNames[s] }

// ClaimActivity is the activity of a claim. A machine's activity combines those of its
// claims.
type ClaimActivity uint8

// The activities.
const (
	Idle      ClaimActivity = iota // no task runs on it
	Busy                           // a task runs
	Suspended                      // its task is frozen
	Retiring                       // its task must be vacated and may still end by itself
	Vacating                       // its task is being vacated
	Killing                        // its task was not vacated in time and is being killed
)

var activityNames = []string{"Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing"}

func (a ClaimActivity) String() string { return activityNames[a] }

// stateMoves and activityMoves are the valid transitions.
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

// setActivity changes the activity of a claim.
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

// setMachineState changes the state of the machine.
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
