package slot

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// never is an instant that does not come.
const never Instant = 1<<63 - 1

// Options are what a machine is.
type Options struct {
	Units     []gpu.Unit  // what is handed out
	Disk      roost.Bytes // likewise
	Queue     QueueOptions
	Reclaim   roost.Reclaim // how boldly what tasks leave is lent
	Settle    time.Duration // after which it is; 0 for the usual time
	Ad        *classad.Ad   // what the machine says of itself, its Start, Requirements and Rank included, but nothing that depends on claims
	FirstID   ClaimID       // of the first new claim; those below may have been used
	KeepExits time.Duration // how long an exit is kept after the lease of its claim is over
}

// Core holds the books of one machine.
type Core struct {
	opt       Options
	free      *gpu.Free
	queues    []queue // by unit
	times     times
	like      gpu.Request // the last batch request: what waits are predicted for
	now       Instant     // of the last call that had it
	claims    map[ClaimID]*Claim
	tasks     map[roost.TaskID]*Claim // those with an attempt on them
	parked    map[ClaimID]parked      // on their way to them
	sessions  map[string]*session     // by schedd
	epoch     uint64                  // highest seen
	used      map[uint64]bool         // grants of that epoch that became claims
	nextID    ClaimID
	draining  string   // why no claims are given; empty: they are
	refused   string   // why none are for now; empty: they are
	bounds    bounds   // what of the machine is lent
	described int      // bytes that the machine's ad may need for all claims
	version   uint64   // of what the machine ad shows
	load      *float64 // as last advertised; nil before

	begun     Instant           // tasks that began by then are of an earlier start; 0: there were none
	sampled   bool              // it is known what tasks use
	wants     string            // who wanted back last what was lent
	shownRoom []roost.Resources // by unit: what may be lent, as last advertised

	effects []Effect
	wake    Instant // no claim needs anything before it
}

// New returns the books of a machine that is not leased to anybody.
func New(opt Options) *Core {
	c := &Core{
		opt: opt, claims: make(map[ClaimID]*Claim), tasks: make(map[roost.TaskID]*Claim), sessions: make(map[string]*session),
		parked: make(map[ClaimID]parked), used: make(map[uint64]bool), nextID: max(opt.FirstID, 1), wake: never, version: 1,
	}
	c.free, c.queues, c.times = gpu.NewFree(opt.Units, opt.Disk), make([]queue, len(opt.Units)), newTimes()
	c.free.SetReclaim(opt.Reclaim != roost.ReclaimOff)
	c.like.CPU, c.like.Memory = roost.DefaultCPU, roost.DefaultMemory
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

// Free returns what is free. The caller only reads it.
func (c *Core) Free() *gpu.Free { return c.free }

// Version rises whenever something changed in the machine's ad by which others decide. How many attempts run is not such a thing: it changes
// thousands of times a second.
func (c *Core) Version() uint64 { return c.version }

// Todo returns what is to be done, in order, and the instant by which to ask again if nothing happens before. What it returned once it does
// not return again.
func (c *Core) Todo(now Instant) (effects []Effect, wake Instant) {
	c.now = now
	if now >= c.wake {
		c.expire(now)
	}
	c.unpark()
	c.withhold()
	c.carve()
	c.reclaims()
	effects, c.effects = c.effects, nil
	return effects, c.wake
}

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// take and giveBack move a claim's resources.
func (c *Core) take(claim *Claim) {
	c.free.Take(claim.Placement)
	claim.holds = true
	if !claim.Placement.Reclaimed {
		c.wants = claim.who()
	}
	c.count(claim, 1)
}

func (c *Core) giveBack(claim *Claim) {
	if claim.holds {
		c.free.Give(claim.Placement)
		claim.holds = false
		c.count(claim, -1)
		c.gone(claim)
		c.resize(c.free)
	}
}

func (c *Core) count(claim *Claim, by int) {
	for _, part := range claim.Placement.Parts {
		if claim.Class == gpu.Batch {
			c.queues[part.Unit].running += by
		}
		c.refresh(part.Unit)
	}
	c.version++
}

// sorted returns the claims by their ids.
func (c *Core) sorted() []*Claim {
	all := make([]*Claim, 0, len(c.claims))
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		all = append(all, c.claims[id])
	}
	return all
}

// drop removes a claim on which nothing runs.
func (c *Core) drop(claim *Claim, reason string) {
	if claim.State == Exited {
		delete(c.tasks, claim.Attempt.Task)
	}
	c.leave(claim)
	c.giveBack(claim)
	c.remove(claim)
	claim.become(Gone)
	c.version++
	c.emit(TellLost{claim, reason})
	c.emit(Dismiss{claim})
}
