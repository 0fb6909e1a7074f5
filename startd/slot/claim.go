package slot

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// Instant is a reading of CLOCK_BOOTTIME, which goes on counting while a machine sleeps.
type Instant = time.Duration

// ClaimID names a claim. A machine never uses one again, not after a restart either.
type ClaimID uint64

func (id ClaimID) String() string { return strconv.FormatUint(uint64(id), 10) }

// GrantID names a grant: ids are unique within one epoch of the negotiator.
type GrantID struct{ Epoch, ID uint64 }

// State is where a claim stands in the life that the package comment draws.
type State uint8

// The states of a claim.
const (
	Making   State = iota // its resources are taken; it is being written down
	Idle                  // nothing runs on it
	Busy                  // an attempt is being prepared or runs
	Vacating              // its attempt was told to end
	Exited                // its attempt has ended, and the schedd has not recorded that yet
	Gone                  // it is no more; nothing but the caller's reference is left
	Waiting               // it holds nothing yet, or no more, and stands in the queue of a unit; an attempt may wait with it
)

func (s State) String() string {
	return [...]string{"making", "idle", "busy", "vacating", "exited", "gone", "waiting"}[s]
}

// legal are the moves that the package comment draws.
var legal = [...][]State{
	Making:   {Idle, Busy, Waiting, Gone},
	Waiting:  {Idle, Busy, Exited, Gone},
	Idle:     {Busy, Gone},
	Busy:     {Vacating, Exited, Gone},
	Vacating: {Exited, Gone},
	Exited:   {Idle, Waiting, Gone},
	Gone:     {},
}

// Claim is a schedd's lease on a part of the machine. Callers only read it.
type Claim struct {
	ID        ClaimID
	Grant     GrantID
	Schedd    string
	Owner     string
	About     About
	UID, GID  uint32
	Class     gpu.Class
	MayWait   bool // its schedd knows what a claim is that waits
	Resources roost.Resources
	Placement gpu.Placement // what it holds; zero while it waits
	State     State
	Attempt   roost.AttemptID // Busy, Vacating and Exited
	Running   bool            // its attempt's processes were seen to start
	Over      bool            // of an adopted one that is Busy: no process of its attempt is left, only how it ended is not known yet
	Lease     Instant         // when it runs out
	Period    time.Duration   // of the lease, unless a renewal says otherwise
	Predicted time.Duration   // how long it was to wait, when it was accepted waiting
	Began     Instant         // Running: when that was
	Terms                     // of its attempt

	Squeezed roost.MilliCPU // in reclaimed room: the processor time it may have while others want it back; 0: what there is

	estimate *reclaim.Estimate // of what its task will use; nil: it keeps what it asked for
	used     reclaim.Amount    // when that was sampled last
	since    Instant           // it is squeezed; 0: it is not

	session uint64  // the one that asked for it
	told    urgency // what its attempt was told
	holds   bool    // its placement is taken
	queue   int     // the unit in whose queue it stands; nowhere
	ending  string  // why it goes as soon as nothing runs on it; empty: it stays
	ended   Instant // when it entered Exited
	vacant  Instant // Exited: when it gives back what it holds, if its schedd is not heard of before; 0: with its lease

	heir     *Claim        // of a victim: whom it makes room for
	victims  []*Claim      // of an heir: those that have not gone yet
	awaited  gpu.Placement // of an heir: what it gets when they have,
	reserved gpu.Placement // what of that is taken for it already,
	later    gpu.Placement // and what they hold yet

	text       int             // bytes that the machine's ad may need for it
	shown      roost.AttemptID // that the machine's ad names
	shownSaved Saved
}

// Terms are what is known of an attempt before it runs.
type Terms struct {
	Walltime time.Duration // 0: no limit
	Expected time.Duration // that it takes, as attempts like it did; 0: nobody knows
	Once     bool          // its task is not run again if it is interrupted and nothing of it was saved
}

// About is what others decide by whether a claim has to go. The books do not look at it.
type About struct {
	Group  string // of its owner
	Band   roost.Band
	Limits string  `json:",omitempty"` // the concurrency limits that it counts for
	Queue  string  `json:",omitempty"` // that its job is in
	Rank   float64 `json:",omitempty"` // the machine's, of what asked for it, when it was given
	Alone  bool    `json:",omitempty"` // it has the machine alone, and all of it
}

// nowhere is the queue of a claim that waits for nothing.
const nowhere = -1

func (c *Claim) String() string { return fmt.Sprintf("claim %d of %s (%v)", c.ID, c.Schedd, c.State) }

// urgency is how an attempt was told to end. It only rises.
type urgency uint8

const (
	untold urgency = iota
	gently
	atOnce
)

// live reports whether an attempt is on the claim that has not ended.
func (c *Claim) live() bool { return c.State == Busy || c.State == Vacating }

// queued reports whether an attempt waits with the claim.
func (c *Claim) queued() bool { return c.State == Waiting && !c.Attempt.Task.Job.IsZero() }

// Holds reports whether the claim has its resources.
func (c *Claim) Holds() bool { return c.holds }

// Waits reports whether the claim stands in the queue of a unit, or waits for its victims to go.
func (c *Claim) Waits() bool { return c.queue != nowhere || len(c.victims) > 0 }

func (c *Claim) request() gpu.Request {
	return gpu.Request{Resources: c.Resources, Class: c.Class, MayReclaim: !c.About.Band.Prod()}
}

// become moves the claim to another state; a move that is not drawn is a bug.
func (c *Claim) become(s State) {
	for _, to := range legal[c.State] {
		if to == s {
			c.State = s
			return
		}
	}
	panic(fmt.Sprintf("%v cannot become %v", c, s))
}
