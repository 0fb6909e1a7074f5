package owner

import (
	"fmt"
	"slices"
)

// State is what a machine is, as a whole.
type State uint8

// The states (HTCondor manual, "Policy Configuration for Execution Points").
const (
	Owner      State = iota // it is its owner's, and nobody has a claim on it
	Unclaimed               // it is lent, and nobody has a claim on it
	Claimed                 // somebody has
	Preempting              // all claims leave
)

var stateNames = []string{"Owner", "Unclaimed", "Claimed", "Preempting"}

func (s State) String() string { return stateNames[s] }

// Activity is what happens on a claim. A machine's is that of its claims together.
type Activity uint8

// The activities.
const (
	Idle      Activity = iota // nothing runs on it
	Busy                      // a task runs
	Suspended                 // one stands still
	Retiring                  // one is to leave and may still end by itself
	Vacating                  // one is leaving
	Killing                   // one that did not leave in time is ended
)

var activityNames = []string{"Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing"}

func (a Activity) String() string { return activityNames[a] }

// stateMoves and activityMoves are what may follow what.
var (
	stateMoves = [][]State{
		Owner:      {Unclaimed, Claimed},
		Unclaimed:  {Owner, Claimed},
		Claimed:    {Owner, Unclaimed, Preempting},
		Preempting: {Owner, Unclaimed, Claimed},
	}
	activityMoves = [][]Activity{
		Idle:      {Busy, Suspended, Vacating},
		Busy:      {Idle, Suspended, Retiring, Vacating},
		Suspended: {Idle, Busy, Vacating},
		Retiring:  {Idle, Busy, Suspended, Vacating},
		Vacating:  {Killing},
		Killing:   {},
	}
)

// become is where claims change what happens on them.
func (c *Core) become(t *tenant, to Activity, cause string) {
	if !slices.Contains(activityMoves[t.activity], to) {
		panic(fmt.Sprintf("claim %d: from %v to %v: %s", t.ID, t.activity, to, cause))
	}
	before := t.where()
	if to == Vacating {
		t.left = c.now
	}
	t.activity, t.since = to, c.now
	c.emit(Moved{t.ID, before, t.where(), cause})
}

// move is where the machine changes its state.
func (c *Core) move(to State, activity Activity, cause string) {
	if to == c.state && activity == c.activity {
		return
	}
	if to != c.state && !slices.Contains(stateMoves[c.state], to) {
		panic(fmt.Sprintf("machine %s: from %v to %v: %s", c.opt.Name, c.state, to, cause))
	}
	before := c.where()
	c.total[c.state][c.activity] += c.now - c.enteredActivity
	if to != c.state || (activity == Suspended) != (c.activity == Suspended) {
		c.version++
	}
	if to != c.state {
		c.enteredState = c.now
	}
	c.state, c.activity, c.enteredActivity = to, activity, c.now
	c.emit(Moved{0, before, c.where(), cause})
}

func (c *Core) where() string { return c.state.String() + "/" + c.activity.String() }
