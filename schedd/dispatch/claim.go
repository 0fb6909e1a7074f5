package dispatch

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// RequestID names a request of the queue.
type RequestID uint64

// ClaimState is where a claim stands in the life that the package comment draws.
type ClaimState uint8

// The states of a claim.
const (
	Requested  ClaimState = iota // the startd was asked, or will be once it is connected
	Idle                         // held, and nothing runs on it
	Busy                         // an attempt was sent to it
	Exited                       // its attempt has exited and waits to be recorded
	Restarting                   // it waits for the next attempt of the task whose last one it ran
)

func (s ClaimState) String() string {
	return [...]string{"asked", "idle", "busy", "returning", "restarting"}[s]
}

// Grant is a negotiator's hint that a claim would succeed.
type Grant struct {
	roost.GrantID
	Request      RequestID
	Node         string
	Address      string
	Resources    roost.Resources
	Token        []byte
	GangID       uint64         // not 0: worth something only with all grants of the same number
	GangSize     int            // how many these are
	MayWait      bool           // the machine has no room now: the claim would wait there
	Victims      []uint64       // claims that have to go for it, as the startd numbers them
	VictimReason string         // they have to
	PortRights   []string       // capabilities over ports that its owner has
	ClaimBy      roost.BootTime // not 0: it takes licences, and its machine takes it until its own clock shows this
	Alloc        uint64         // not 0: the claim inside which it is to be; no negotiator knows of it
}

// Claim is a lease on a part of a machine.
type Claim struct {
	ID        uint64 // the startd's; 0 until it answered
	Node      string
	Grant     Grant
	Request   RequestID
	Resources roost.Resources
	State     ClaimState
	Running   bool            // Busy: its processes are known to run
	Attempt   roost.AttemptID // Busy and Exited; Restarting: the last one
	Lease     time.Duration
	Placement string // see ClaimReply
	MayWait   bool   // it may be accepted waiting
	Waiting   bool   // it has no resources now, and gets them when its turn comes

	firstAdSequence uint64                  // sequence of the first machine ad that shows it; 0: not known
	adopted         bool                    // it was there when this schedd started
	acceptedAt      roost.BootTime          // when the startd answered
	stateSince      roost.BootTime          // when it entered its state
	leaseSent       roost.BootTime          // the lease goes on from then, or from earlier
	requestSent     bool                    // Asked: the request was sent on the present session
	waitSince       roost.BootTime          // Waiting: since when
	readyAt         roost.BootTime          // Waiting: until when, as predicted; 0 unknown
	yieldedAt       roost.BootTime          // when it last passed its resources on; 0 never
	releaseAtEnd    bool                    // it is given back when its task has ended
	failures        int                     // of its attempts, in a row
	gang            *pendingGang            // that it is to be part of, until that starts
	reservedUntil   roost.BootTime          // Idle: a task is on its way to it
	timer           deadlineTimer           // Idle
	idleOrder       uint64                  // Idle: which it was to become so
	vacating        bool                    // Busy: a vacate was sent; sent again on a new session
	withCheckpoint  bool                    // and with a checkpoint
	resizing        bool                    // Busy: its startd was asked for another size, and has not answered
	shrunk          bool                    // it has become smaller where it is
	displaced       []roost.PreemptionParty // see TakeDisplaced
	silence         SilenceRules            // of its request
	grantedAt       roost.BootTime          // when the grant came
	windowOrder     uint64                  // of the last UnavailableWindow that was known then
	silenceNoted    bool                    // the queue knows that the node is silent
	alloc           roost.TaskID            // that holds the alloc inside which it is; zero: it is inside none
}

func (c *Claim) String() string {
	return fmt.Sprintf("claim %d on %s (%v, request %d)", c.ID, c.Node, c.State, c.Request)
}

// leaseEnd returns the instant after which no process of the claim can be alive. This
// holds even if the node never receives another message.
func (c *Claim) leaseEnd(killGrace time.Duration) roost.BootTime {
	if mutant.Active(mutant.LeaseWithoutKillMargin) {
		return c.leaseSent + c.Lease
	}
	return leaseEnd(c.leaseSent, c.Lease, killGrace)
}

// lostAt returns the instant at which an attempt is given up whose node has been silent
// since awaySince. Where a job allows two attempts at once, that may be before the lease
// has ended.
func (c *Claim) lostAt(awaySince roost.BootTime, killGrace time.Duration) roost.BootTime {
	end := c.leaseEnd(killGrace)
	switch {
	case c.silence.LostAfter == 0 || awaySince == 0:
		return end
	case c.silence.Overlap:
		return awaySince + c.silence.LostAfter
	}
	return max(end, awaySince+c.silence.LostAfter)
}

// silenceDue returns when the queue is to be told that the node is silent. It is false if
// it is not.
func (c *Claim) silenceDue(awaySince roost.BootTime) (at roost.BootTime, ok bool) {
	if c.silenceNoted || c.silence.NotedAfter == 0 || awaySince == 0 {
		return 0, false
	}
	return awaySince + c.silence.NotedAfter, true
}

// awayDeadline is when something is due for a claim whose node is silent.
func (c *Claim) awayDeadline(awaySince roost.BootTime, killGrace time.Duration) roost.BootTime {
	at := c.lostAt(awaySince, killGrace)
	if due, ok := c.silenceDue(awaySince); ok {
		at = min(at, due)
	}
	return at
}

// leaseEnd returns the instant after which no process under a lease can be alive. sent is
// the instant at which the lease was sent.
func leaseEnd(sent, lease roost.BootTime, killGrace time.Duration) roost.BootTime {
	return sent + lease + lease/100 + killGrace
}

// LeaseEnd is lapse for an attempt that is not on record.
func (d *Dispatcher) LeaseEnd(sent roost.BootTime, lease time.Duration) roost.BootTime {
	return leaseEnd(sent, lease, d.options.KillGrace)
}
