package slot

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
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
)

func (s State) String() string {
	return [...]string{"making", "idle", "busy", "vacating", "exited", "gone"}[s]
}

// legal are the moves that the package comment draws.
var legal = [...][]State{
	Making:   {Idle, Busy, Gone},
	Idle:     {Busy, Gone},
	Busy:     {Vacating, Exited, Gone},
	Vacating: {Exited, Gone},
	Exited:   {Idle, Gone},
	Gone:     {},
}

// Claim is a schedd's lease on a part of an RU. Callers only read it.
type Claim struct {
	ID        ClaimID
	Grant     GrantID
	Schedd    string
	Owner     string
	UID, GID  uint32
	RU        int // index of the RU that it is a part of
	Resources roost.Resources
	State     State
	Attempt   roost.AttemptID // Busy, Vacating and Exited
	Running   bool            // its attempt's processes were seen to start
	Lease     Instant         // when it runs out
	Period    time.Duration   // of the lease, unless a renewal says otherwise

	session uint64  // the one that asked for it
	told    urgency // what its attempt was told
	holds   bool    // its resources are taken from the RU
	ending  string  // why it goes as soon as nothing runs on it; empty: it stays
	ended   Instant // when it entered Exited
}

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

// RU is a resource unit: a set of resources that is handed out together.
type RU struct {
	Name  string
	Total roost.Resources
	Free  roost.Resources // Total minus what claims hold
}
