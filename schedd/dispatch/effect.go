package dispatch

import (
	"time"

	"github.com/roost-batch/roost"
)

// Effect is something to be done outside: exactly one of the types below.
type Effect interface{ effect() }

// Connect asks for a session with a node, and to keep it until Disconnect.
type Connect struct{ Node, Address string }

// Disconnect says that nothing is held on the node any more.
type Disconnect struct{ Node string }

// AskClaim sends a claim request.
type AskClaim struct{ Claim *Claim }

// Activate sends an attempt to run on a claim. The assignment must be on disk first.
type Activate struct {
	Node    string
	Claim   uint64
	Attempt roost.AttemptID
}

// Vacate ends an attempt.
type Vacate struct {
	Node    string
	Attempt roost.AttemptID
	Order   VacateOrder
}

// VacateOrder says why and how an attempt is to end.
type VacateOrder struct {
	Fast   bool // without notice
	Keep   bool // with a checkpoint, if one can be taken
	Reason string
}

// Acknowledge lets the node forget an attempt whose end is on disk.
type Acknowledge struct {
	Node    string
	Attempt roost.AttemptID
}

// Release gives a claim back.
type Release struct {
	Node  string
	Claim uint64
}

// Renew tells a node that all leases go on from now, which is so long after its last word was heard.
type Renew struct {
	Node  string
	Heard uint64 // the number of that word; 0: the welcome
	Since time.Duration
}

// Answer tells the negotiator what became of a grant. How much is wanted for the request has to be counted anew: what was asked is not on its way
// any more.
type Answer struct {
	Grant      GrantID
	Request    RequestID
	Claimed    bool
	Waiting    bool // the claim waits for its resources
	AdSequence uint64
	Reason     string
}

func (Connect) effect()     {}
func (Disconnect) effect()  {}
func (AskClaim) effect()    {}
func (Activate) effect()    {}
func (Vacate) effect()      {}
func (Acknowledge) effect() {}
func (Release) effect()     {}
func (Renew) effect()       {}
func (Answer) effect()      {}
