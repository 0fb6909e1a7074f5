package dispatch

import (
	"time"

	"github.com/roost-batch/roost"
)

// Effect is something to be done outside: exactly one of the types below.
type Effect interface{ effect() }

// ConnectNode asks for a session with a node, and to keep it until DisconnectNode.
type ConnectNode struct{ Node, Address string }

// DisconnectNode says that nothing is held on the node any more.
type DisconnectNode struct{ Node string }

// RequestClaim sends a claim request.
type RequestClaim struct{ Claim *Claim }

// ActivateClaim sends an attempt to run on a claim. The assignment must be on disk first.
type ActivateClaim struct {
	Node    string
	Claim   uint64
	Attempt roost.AttemptID
}

// VacateAttempt ends an attempt.
type VacateAttempt struct {
	Node    string
	Attempt roost.AttemptID
	Order   VacateOrder
}

// VacateOrder says why and how an attempt is to end.
type VacateOrder struct {
	WithoutNotice bool // without notice
	Checkpoint    bool // with a checkpoint, if one can be taken
	ReleaseClaim  bool // the claim takes no other attempt
	Reason        string
}

// AcknowledgeExit lets the node forget an attempt whose end is on disk.
type AcknowledgeExit struct {
	Node    string
	Attempt roost.AttemptID
}

// ReleaseClaim gives a claim back.
type ReleaseClaim struct {
	Node  string
	Claim uint64
}

// RenewLeases tells a node that all leases continue from now. Since is the time since the
// node's last message arrived.
type RenewLeases struct {
	Node        string
	LastMessage uint64 // the number of that word; 0: the welcome
	Since       time.Duration
}

// GrantResult tells the negotiator what became of a grant. How much is wanted for the
// request has to be counted anew: what was asked is not on its way any more.
type GrantResult struct {
	Grant      roost.GrantID
	Request    RequestID
	Claimed    bool
	Waiting    bool // the claim waits for its resources
	AdSequence uint64
	Reason     string
}

// Reasons of a GrantResult for claims that no machine refused.
const (
	UnwantedClaim = "nothing waits for it any more"
	SilentNode    = "the node does not answer"
	BusyNode      = "the node has too many other claims to answer first"
)

func (ConnectNode) effect()     {}
func (DisconnectNode) effect()  {}
func (RequestClaim) effect()    {}
func (ActivateClaim) effect()   {}
func (VacateAttempt) effect()   {}
func (AcknowledgeExit) effect() {}
func (ReleaseClaim) effect()    {}
func (RenewLeases) effect()     {}
func (GrantResult) effect()     {}
