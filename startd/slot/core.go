package slot

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// noDeadline is an instant that does not come.
const noDeadline roost.BootTime = 1<<63 - 1

// TableOptions are what a machine is.
type TableOptions struct {
	Units        []gpu.ResourceUnit // what is handed out
	Disk         roost.Bytes        // likewise
	IO           roost.IORates      // likewise; zero rates: the machine states none
	MemorySlack  int                // percent of its request that a claim may have beyond it
	Queue        QueueOptions
	Reclaim      roost.ReclaimLevel // how boldly what tasks leave is lent
	SettlingTime time.Duration      // after which it is; 0 for the usual time
	// what the machine says of itself, its StartAttempt, Requirements and Rank included,
	// but nothing that depends on claims
	Ad            *classad.Ad
	FirstID       ClaimID       // of the first new claim; those below may have been used
	ExitRetention time.Duration // how long an exit is kept after the lease of its claim is over
	Ports         PortSettings
}

// ClaimTable holds the books of one machine.
type ClaimTable struct {
	opt               TableOptions
	free              *gpu.FreeResources
	queues            []nodeQueue // by unit
	runtimes          runtimeHistory
	lastBatchRequest  gpu.DeviceRequest // the last batch request: what waits are predicted for
	now               roost.BootTime    // of the last call that had it
	claims            claimSet
	tasks             map[roost.TaskID]*Claim        // those with an attempt on them
	deferred          map[ClaimID]deferredActivation // on their way to them
	ports             *PortTable
	sessions          sessionTable
	epoch             uint64          // highest seen
	usedGrants        map[uint64]bool // grants of that epoch that became claims
	ids               ClaimIDs
	drainReason       string      // why no claims are given; empty: they are
	unavailableReason string      // why none are for now; empty: they are
	ownerLimits       ownerLimits // what of the machine is lent
	claimsAdBytes     int         // bytes that the machine's ad may need for all claims
	version           uint64      // of what the machine ad shows
	advertisedLoad    *float64    // as last advertised; nil before

	adoptedStart          roost.BootTime         // tasks that began by then are of an earlier start; 0: there were none
	hasUsageSamples       bool                   // it is known what tasks use
	lastReclaimer         string                 // who wanted back last what was lent
	reclaimerParty        *roost.PreemptionParty // likewise; nil: the owner of the machine, or nobody yet
	advertisedReclaimable []roost.Resources      // by unit: what may be lent, as last advertised

	effects      []Effect
	nextDeadline roost.BootTime // no claim needs anything before it
}

// New returns the books of a machine that is not leased to anybody.
func New(opt TableOptions) *ClaimTable {
	c := &ClaimTable{
		opt: opt, claims: make(claimSet), tasks: make(map[roost.TaskID]*Claim),
		sessions: make(sessionTable),
		deferred: make(map[ClaimID]deferredActivation), usedGrants: make(map[uint64]bool),
		ids:          ClaimIDs{next: max(opt.FirstID, 1)},
		ports:        newPortTable(opt.Ports),
		nextDeadline: noDeadline, version: 1,
	}
	c.free, c.queues, c.runtimes = gpu.NewFree(opt.Units, opt.Disk), make([]nodeQueue, len(opt.Units)),
		newRuntimeHistory()
	c.free.SetIOTotal(opt.IO)
	c.free.SetReclaim(opt.Reclaim != roost.ReclaimOff)
	c.lastBatchRequest.CPU, c.lastBatchRequest.Memory = roost.DefaultCPU, roost.DefaultMemory
	return c
}

// Claim returns the claim of that id.
func (c *ClaimTable) Claim(id ClaimID) (*Claim, bool) {
	claim, ok := c.claims[id]
	return claim, ok
}

// Find returns the claim that the attempt is on, ended or not.
func (c *ClaimTable) Find(a roost.AttemptID) (*Claim, bool) {
	claim, ok := c.tasks[a.Task]
	return claim, ok && claim.Attempt == a
}

// Len is the number of claims.
func (c *ClaimTable) Len() int { return len(c.claims) }

// Running is the number of attempts that have not ended.
func (c *ClaimTable) Running() int { return c.claims.running() }

// Claims lists the claims by their ids.
func (c *ClaimTable) Claims() []*Claim { return c.claims.sorted() }

// Free returns what is free. The caller only reads it.
func (c *ClaimTable) Free() *gpu.FreeResources { return c.free }

// Version rises whenever something changed in the machine's ad by which others decide.
// How many attempts run is not such a thing: it changes thousands of times a second.
func (c *ClaimTable) Version() uint64 { return c.version }

// Todo returns what is to be done, in order, and when to ask again if nothing happens
// before. It returns each effect only once.
func (c *ClaimTable) Todo(now roost.BootTime) (effects []Effect, wake roost.BootTime) {
	c.now = now
	if now >= c.nextDeadline {
		c.leases().handleDeadlines(now)
	}
	c.deferredStarts().activateDeferred()
	c.ownerBounds().enforceOwnerLimits()
	c.nodeQueues().placeQueued()
	c.reclaimer().reclaimUnit()
	if c.ports.updateQuarantines(now) {
		c.version++
	}
	effects, c.effects = c.effects, nil
	return effects, c.nextDeadline
}

func (c *ClaimTable) addEffect(e Effect) { c.effects = append(c.effects, e) }

// takeResources and releaseResources move a claim's resources.
func (c *ClaimTable) takeResources(claim *Claim) {
	if claim.Inside != 0 { // what it has is its alloc's
		claim.hasPlacement = true
		return
	}
	c.free.TakePlacement(claim.Placement)
	claim.hasPlacement = true
	if !claim.Placement.Reclaimed {
		c.reclaimer().setReclaimer(claim)
	}
	c.countClaims(claim, 1)
}

func (c *ClaimTable) releaseResources(claim *Claim) {
	if claim.endReason != "" {
		PortsOf(c).release(claim)
	}
	switch {
	case !claim.hasPlacement:
	case claim.Inside != 0:
		claim.hasPlacement = false
		allocsOf(c).leftAlloc(claim.Inside)
	default:
		c.free.ReturnPlacement(claim.Placement)
		claim.hasPlacement = false
		c.countClaims(claim, -1)
		c.preemptions().victimFreed(claim)
		c.ownerBounds().resizeUnits(c.free)
	}
}

func (c *ClaimTable) countClaims(claim *Claim, by int) {
	for _, part := range claim.Placement.Parts {
		if claim.Class == gpu.BatchClass {
			c.queues[part.Unit].running += by
		}
		c.nodeQueues().updateFreeList(part.Unit)
	}
	c.version++
}

// dropClaim removes a claim on which nothing runs.
func (c *ClaimTable) dropClaim(claim *Claim, reason string) {
	if claim.State == Exited {
		delete(c.tasks, claim.Attempt.Task)
	}
	c.nodeQueues().leaveQueue(claim)
	c.releaseResources(claim)
	PortsOf(c).release(claim)
	c.removeClaim(claim)
	claim.setState(Gone)
	c.version++
	c.addEffect(ReportLost{claim, reason})
	c.addEffect(RemoveClaim{claim})
}
