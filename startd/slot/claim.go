package slot

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// ClaimID names a claim. A machine never uses one again, not after a restart either.
type ClaimID uint64

func (id ClaimID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ClaimState is where a claim stands in the life that the package comment draws.
type ClaimState uint8

// The states of a claim.
const (
	Creating ClaimState = iota // its resources are taken; it is being written down
	Idle                       // nothing runs on it
	Busy                       // an attempt is being prepared or runs
	Vacating                   // its attempt was told to end
	Exited                     // its attempt has ended, and the schedd has not recorded that yet
	Gone                       // it is no more; nothing but the caller's reference is left
	// it holds nothing yet, or no more, and stands in the queue of a unit; an attempt may
	// wait with it
	Waiting
)

func (s ClaimState) String() string {
	return [...]string{"making", "idle", "busy", "vacating", "exited", "gone", "waiting"}[s]
}

// legalMoves are the moves that the package comment draws.
var legalMoves = [...][]ClaimState{
	Creating: {Idle, Busy, Waiting, Gone},
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
	Grant     roost.GrantID
	Schedd    string
	Owner     string
	Info      ClaimInfo
	UID, GID  uint32
	Class     gpu.AppClass
	Inside    ClaimID // the alloc inside which it is; 0: it is a part of the machine
	CanQueue  bool    // its schedd knows what a claim is that waits
	Resources roost.Resources
	Placement gpu.Placement // what it holds; zero while it waits
	State     ClaimState
	Attempt   roost.AttemptID // Busy, Vacating and Exited
	Running   bool            // its attempt's processes were seen to start
	// of an adopted one that is Busy: no process of its attempt is left, only how it
	// ended is not known yet
	ProcessesGone bool
	Lease         roost.BootTime // when it runs out
	LeasePeriod   time.Duration  // of the lease, unless a renewal says otherwise
	PredictedWait time.Duration  // how long it was to wait, when it was accepted waiting
	RunningSince  roost.BootTime // Running: when that was
	AttemptInfo                  // of its attempt

	// of a claim whose attempt was told to end as Preempted: for whom; nil: nobody, or it
	// is not known
	Preemptor *roost.PreemptionParty
	Displaced []roost.PreemptionParty // of a preemptor: whose attempts were told to end for it

	// in reclaimed room: the processor time it may have while others want it back; 0:
	// what there is
	CPUCap roost.MilliCPU

	// memory that its tasks may use now beyond its request
	MemorySlack roost.Bytes

	estimate       *reclaim.UsageEstimate // of what its task will use; nil: it keeps what it asked for
	lastUsage      reclaim.ResourceAmount // when that was sampled last
	throttledSince roost.BootTime         // it is squeezed; 0: it is not

	session      uint64         // the one that asked for it
	stopMode     stopMode       // what its attempt was told
	hasPlacement bool           // its placement is taken
	queue        int            // the unit in whose queue it stands; nowhere
	endReason    string         // why it goes as soon as nothing runs on it; empty: it stays
	exitedAt     roost.BootTime // when it entered Exited
	// Exited: when it gives back what it holds, if its schedd is not heard of before; 0:
	// with its lease
	releaseAt roost.BootTime

	Ports         []roost.ClaimPort // that it has on the machine
	PortJob       string            // that they are for, with its schedd
	portsBound    bool              // an attempt was started with them, so those with Listen are bound
	portsReleased bool              // they are its no more

	pendingVacate *VacateAttempt // of an alloc: how it ends when nothing is inside any more
	endedFirst    bool           // of an alloc: its own attempt has ended, and claims inside have not
	resize        *claimResize   // that is under way; nil: none is

	preemptor       *Claim        // of a victim: whom it makes room for
	victims         []*Claim      // of an heir: those that have not gone yet
	target          gpu.Placement // of an heir: what it gets when they have,
	reserved        gpu.Placement // what of that is taken for it already,
	victimResources gpu.Placement // and what they hold yet

	adBytes              int             // bytes that the machine's ad may need for it
	advertised           roost.AttemptID // that the machine's ad names
	advertisedCheckpoint CheckpointInfo
	printed              printedClaimAd
}

// BoundPriority returns the priority of a job as a schedd says it, within the range that
// priorities have.
func BoundPriority(n int32) int32 { return min(max(n, roost.MinPriority), roost.MaxPriority) }

// AttemptInfo are what is known of an attempt before it runs.
type AttemptInfo struct {
	Walltime       time.Duration // 0: no limit
	Expected       time.Duration // that it takes, as attempts like it did; 0: nobody knows
	Priority       int32         // of its job, among those of its submitter
	NotRestartable bool          // its task is not run again if it is interrupted and nothing of it was saved
}

// ClaimInfo is what others decide by whether a claim has to go. The books do not look at
// it.
type ClaimInfo struct {
	Group  string // of its owner
	Band   roost.PriorityBand
	Limits string  `json:",omitempty"` // the concurrency limits that it counts for
	Queue  string  `json:",omitempty"` // that its job is in
	Rank   float64 `json:",omitempty"` // the machine's, of what asked for it, when it was given
	Alone  bool    `json:",omitempty"` // it has the machine alone, and all of it
	Alloc  bool    `json:",omitempty"` // it is an alloc: claims can be made inside it

	NoCPUSlack  bool `json:",omitempty"` // it never has more CPU time than it asked for
	MemorySlack bool `json:",omitempty"` // it may use memory beyond its request while that is idle
	WholeCores  bool `json:",omitempty"` // it has its physical cores to itself
	CoreThreads int  `json:",omitempty"` // CPUs that it uses of each of its physical cores; 0: all
	OneNUMANode bool `json:",omitempty"` // its CPUs are of one NUMA node
}

// nowhere is the queue of a claim that waits for nothing.
const nowhere = -1

func (c *Claim) String() string { return fmt.Sprintf("claim %d of %s (%v)", c.ID, c.Schedd, c.State) }

// stopMode is how an attempt was told to end. It only rises.
type stopMode uint8

const (
	notStopping stopMode = iota
	graceful
	immediate
)

// hasLiveAttempt reports whether an attempt is on the claim that has not ended.
func (c *Claim) hasLiveAttempt() bool { return c.State == Busy || c.State == Vacating }

// hasQueuedAttempt reports whether an attempt waits with the claim.
func (c *Claim) hasQueuedAttempt() bool { return c.State == Waiting && !c.Attempt.Task.Job.IsZero() }

// HasResources reports whether the claim has its resources.
func (c *Claim) HasResources() bool { return c.hasPlacement }

// IsWaiting reports whether the claim stands in the queue of a unit, or waits for its
// victims to go.
func (c *Claim) IsWaiting() bool { return c.queue != nowhere || len(c.victims) > 0 }

func (c *Claim) request() gpu.DeviceRequest {
	return gpu.DeviceRequest{Resources: c.Resources, Class: c.Class, MayReclaim: !c.Info.Band.IsProd()}
}

// setState moves the claim to another state; a move that is not drawn is a bug.
func (c *Claim) setState(s ClaimState) {
	for _, to := range legalMoves[c.State] {
		if to == s {
			c.State = s
			return
		}
	}
	panic(fmt.Sprintf("%v cannot become %v", c, s))
}
