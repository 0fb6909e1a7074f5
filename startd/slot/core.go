package slot

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// never is an instant that does not come.
const never Instant = 1<<63 - 1

// Options are what a machine is.
type Options struct {
	RUs       []RU          // what is handed out; Free is filled in
	Ad        *classad.Ad   // what the machine says of itself, its Start, Requirements and Rank included, but nothing that depends on claims
	FirstID   ClaimID       // of the first new claim; those below may have been used
	KeepExits time.Duration // how long an exit is kept after the lease of its claim is over
}

// Core holds the books of one machine.
type Core struct {
	opt      Options
	rus      []RU
	claims   map[ClaimID]*Claim
	tasks    map[roost.TaskID]*Claim // those with an attempt on them
	sessions map[string]*session     // by schedd
	epoch    uint64                  // highest seen
	used     map[uint64]bool         // grants of that epoch that became claims
	nextID   ClaimID
	draining string   // why no claims are given; empty: they are
	version  uint64   // of what the machine ad shows
	load     *float64 // as last advertised; nil before

	effects []Effect
	wake    Instant // no claim needs anything before it
}

// New returns the books of a machine that is not leased to anybody.
func New(opt Options) *Core {
	c := &Core{
		opt: opt, claims: make(map[ClaimID]*Claim), tasks: make(map[roost.TaskID]*Claim), sessions: make(map[string]*session),
		used: make(map[uint64]bool), nextID: max(opt.FirstID, 1), wake: never, version: 1,
	}
	for _, ru := range opt.RUs {
		c.rus = append(c.rus, RU{ru.Name, ru.Total, ru.Total})
	}
	return c
}

// Claim returns the claim of that id.
func (c *Core) Claim(id ClaimID) (*Claim, bool) {
	claim, ok := c.claims[id]
	return claim, ok
}

// Find returns the claim that the attempt is on, ended or not.
func (c *Core) Find(a roost.AttemptID) (*Claim, bool) {
	claim, ok := c.tasks[a.Task]
	return claim, ok && claim.Attempt == a
}

// Len is the number of claims.
func (c *Core) Len() int { return len(c.claims) }

// Running is the number of attempts that have not ended.
func (c *Core) Running() int {
	n := 0
	for _, claim := range c.claims {
		if claim.live() {
			n++
		}
	}
	return n
}

// RUs returns the resource units as they stand.
func (c *Core) RUs() []RU { return append([]RU(nil), c.rus...) }

// Version rises whenever something changed in the machine's ad by which others decide. How many attempts run is not such a thing: it changes
// thousands of times a second.
func (c *Core) Version() uint64 { return c.version }

// Todo returns what is to be done, in order, and the instant by which to ask again if nothing happens before. What it returned once it does
// not return again.
func (c *Core) Todo(now Instant) (effects []Effect, wake Instant) {
	if now >= c.wake {
		c.expire(now)
	}
	effects, c.effects = c.effects, nil
	return effects, c.wake
}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// take and giveBack move a claim's resources.
func (c *Core) take(claim *Claim) {
	ru := &c.rus[claim.RU]
	ru.Free = ru.Free.Sub(claim.Resources)
	claim.holds = true
	c.version++
}

func (c *Core) giveBack(claim *Claim) {
	if claim.holds {
		ru := &c.rus[claim.RU]
		ru.Free = ru.Free.Add(claim.Resources)
		claim.holds = false
		c.version++
	}
}

// drop removes a claim on which nothing runs.
func (c *Core) drop(claim *Claim, reason string) {
	if claim.State == Exited {
		delete(c.tasks, claim.Attempt.Task)
	}
	c.giveBack(claim)
	delete(c.claims, claim.ID)
	claim.become(Gone)
	c.version++
	c.emit(TellLost{claim, reason})
	c.emit(Dismiss{claim})
}

// check panics when the books contradict themselves.
func (c *Core) check() {
	free := make([]roost.Resources, len(c.rus))
	for i, ru := range c.rus {
		free[i] = ru.Total
	}
	busy := 0
	for id, claim := range c.claims {
		if claim.ID != id || id >= c.nextID || claim.State == Gone {
			panic(fmt.Sprintf("%v stands under %d, next is %d", claim, id, c.nextID))
		}
		if claim.holds {
			free[claim.RU] = free[claim.RU].Sub(claim.Resources)
		} else if claim.State != Exited {
			panic(fmt.Sprintf("%v holds no resources", claim))
		}
		if claim.live() || claim.State == Exited {
			busy++
			if c.tasks[claim.Attempt.Task] != claim {
				panic(fmt.Sprintf("%v: attempt %v is not on it", claim, claim.Attempt))
			}
		}
		if due := claim.due(c.opt.KeepExits); due < c.wake {
			panic(fmt.Sprintf("%v is due at %v, before the wake at %v", claim, due, c.wake))
		}
	}
	if busy != len(c.tasks) {
		panic(fmt.Sprintf("%d claims have an attempt, and %d tasks are known", busy, len(c.tasks)))
	}
	for i, ru := range c.rus {
		if ru.Free != free[i] || ru.Free.Negative() {
			panic(fmt.Sprintf("RU %s has %v free, and %v by its claims", ru.Name, ru.Free, free[i]))
		}
	}
}
