package plan

import (
	"fmt"
	"slices"
	"time"
)

// AllocationState is where an allocation is in its life. It only rises.
type AllocationState uint8

// The states.
const (
	Submitting AllocationState = iota // the journal has it; the outer system has not answered
	Queued                            // the outer system has given it an id
	Running                           // its script runs
	Ended
)

var stateNames = [...]string{"submitting", "queued", "running", "ended"}

func (s AllocationState) String() string { return stateNames[s] }

// Outcome is how an allocation ended.
type Outcome string

// The outcomes.
const (
	Refused   Outcome = "refused"   // the outer system did not take it
	Cancelled Outcome = "cancelled" // the provisioner took it back
	Worked    Outcome = "worked"    // its pilots joined, and stayed long enough
	// no pilot of it joined, or the last one left at once, and not in order
	EarlyDeath Outcome = "early death"
	// no pilot of it was seen; it may have had some while the provisioner did not look
	Unseen Outcome = "unseen"
)

// maxLookGap is the longest time between two looks at the pilots in which none is
// missed.
const maxLookGap = 2 * time.Minute

// earlyAfter is how long pilots have to live: what ends sooner was of no use.
const earlyAfter = time.Minute

// missingAnswers is after how many answers in a row without it an allocation has ended.
// Outer systems that restart give empty answers without an error.
const missingAnswers = 3

// maxHosts bounds the hosts that are remembered of an allocation.
const maxHosts = 64

// Allocation is a job in an outer system that starts pilots.
type Allocation struct {
	Key      string // its name there; nothing else has it
	Provider string
	Nodes    int
	Walltime time.Duration
	For      string // the reason for which it was asked

	State   AllocationState
	OuterID string // "": not known
	Asked   time.Time
	Queued  time.Time // when the outer system took it
	Started time.Time // when its script began to run, as far as is known
	Joined  time.Time // when its first pilot joined
	Left    time.Time // when its last pilot left; zero while one is there
	EndedAt time.Time

	Joins     int      // pilots that have joined
	Live      int      // pilots that are there
	Hosts     []string // of its pilots, in the outer system
	Outcome   Outcome
	Reason    string    // why it ended, or is to be cancelled
	Surplus   time.Time // since when nothing needs it; zero: something does
	CancelAt  time.Time // when its cancelling was ordered; zero: it was not
	Unfound   int       // answers in a row that did not name it
	Unwatched bool      // it may have run while the provisioner did not look at the pilots
	OuterText string    // what the outer system says of it
	Failing   string    // why it is to end: tasks fail on all its pilots; "": they do not
}

// become moves the allocation to a higher state.
func (a *Allocation) become(next AllocationState) {
	if next <= a.State {
		panic(fmt.Sprintf("allocation %s of %s: from %v to %v", a.Key, a.Provider, a.State, next))
	}
	a.State = next
}

// end ends the allocation.
func (a *Allocation) end(now time.Time, outcome Outcome, reason string) {
	a.become(Ended)
	a.EndedAt, a.Outcome, a.Reason, a.Live, a.Surplus = now, outcome, reason, 0, time.Time{}
}

// run notes that the script runs since then.
func (a *Allocation) run(since time.Time) {
	if a.State < Running {
		a.become(Running)
		a.Started, a.Surplus = since, time.Time{}
	}
}

func (a *Allocation) addHost(host string) {
	if host != "" && !slices.Contains(a.Hosts, host) && len(a.Hosts) < maxHosts {
		a.Hosts = append(a.Hosts, host)
	}
}

// isWaiting reports whether the allocation is in the outer system's queue, or may be.
func (a *Allocation) isWaiting() bool { return a.State < Running }

// isUnproven reports whether no pilot of it has joined, so that it may never work.
func (a *Allocation) isUnproven() bool { return a.State != Ended && a.Joins == 0 }

// comingNodes returns how many of its nodes are yet to join.
func (a *Allocation) comingNodes(now time.Time, joinWithin time.Duration) int {
	switch {
	case !a.CancelAt.IsZero() || a.State == Ended:
		return 0
	case a.isWaiting():
		return a.Nodes
	case now.Sub(a.Started) < joinWithin:
		return max(a.Nodes-a.Joins, 0)
	}
	return 0
}

// possibleEnd returns when the allocation ends at the latest. If it has not started, its
// whole walltime is to come.
func (a *Allocation) possibleEnd(now time.Time) time.Time {
	switch {
	case a.State == Ended:
		return a.EndedAt
	case a.State == Running && a.Started.Before(now):
		return maxTime(a.Started.Add(a.Walltime), now)
	}
	return now.Add(a.Walltime)
}

// hoursSince returns the node-hours that the allocation has taken since then and may take
// yet.
func (a *Allocation) hoursSince(from, now time.Time) float64 {
	if a.Started.IsZero() && a.State == Ended {
		return 0
	}
	begin := a.Started
	if a.State < Running {
		begin = now
	}
	return max(a.possibleEnd(now).Sub(maxTime(begin, from)).Hours(), 0) * float64(a.Nodes)
}

// UsedHours returns the node-hours that the allocation has taken.
func (a *Allocation) UsedHours(now time.Time) float64 {
	if a.Started.IsZero() {
		return 0
	}
	end := now
	if a.State == Ended {
		end = a.EndedAt
	}
	return max(end.Sub(a.Started).Hours(), 0) * float64(a.Nodes)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
