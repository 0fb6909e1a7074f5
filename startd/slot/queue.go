package slot

import (
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// QueueOptions say how many batch claims may wait on the machine, for each unit by itself
// (HRM §3.4). The zero value lets none wait: a claim that waits here is one that no other
// machine can take, so it is for the pool's people to want it.
type QueueOptions struct {
	RunLimit int           // batch claims that may hold a part of a unit at once (r); 0: as many as fit
	Length   int           // how many may wait (b)
	Auto     bool          // instead of Length: as many as end while a schedd sends the next
	MaxWait  time.Duration // none may wait that would wait longer, as predicted; 0: however long
}

// maxQueue bounds what waits for one unit when no length is said: each has a starter.
const maxQueue = 64

func (o QueueOptions) isOff() bool { return o.Length == 0 && !o.Auto && o.MaxWait == 0 }

// nodeQueue is the batch queue of one unit. Its claims hold nothing. It has those that
// were accepted waiting, and those that passed their resources on when their attempt had
// ended: they are in it at once, and can be carved when the schedd has recorded the end.
type nodeQueue struct {
	claims  []*Claim // in the order of their turns
	running int      // batch claims that hold a part of the unit
}

// nodeQueues is the claim table as far as batch claims wait in the queues of its units.
type nodeQueues struct{ *ClaimTable }

func (c *ClaimTable) nodeQueues() nodeQueues { return nodeQueues{c} }

// joinQueue puts a claim at the end of the queue of a unit; leave takes it out.
func (c nodeQueues) joinQueue(claim *Claim, unit int) {
	claim.queue = unit
	q := &c.queues[unit]
	q.claims = append(q.claims, claim)
	c.updateFreeList(unit)
}

func (c nodeQueues) leaveQueue(claim *Claim) {
	c.preemptions().cancelPreemption(claim)
	if unit := claim.queue; unit != nowhere {
		claim.queue = nowhere
		q := &c.queues[unit]
		q.claims = slices.DeleteFunc(q.claims, func(o *Claim) bool { return o == claim })
		c.updateFreeList(unit)
	}
}

// updateFreeList tells the free list how the queue of a unit stands: while somebody
// waits, nobody may go before.
func (c nodeQueues) updateFreeList(unit int) {
	q := &c.queues[unit]
	c.free.SetQueue(unit, gpu.UnitQueue{RunLimit: c.opt.Queue.RunLimit, Running: q.running, Length: len(q.claims)})
	c.version++
}

// next returns the claim whose turn it is, or nil if there is none. It is the first claim
// that has something to run, because one that has nothing loses nothing; else it is the
// first of all.
func (q *nodeQueue) next() *Claim {
	var first *Claim
	for _, claim := range q.claims {
		if claim.hasQueuedAttempt() {
			return claim
		}
		if first == nil && (claim.State == Waiting || claim.State == Creating) {
			first = claim
		}
	}
	return first
}

// placeQueued gives free resources to waiting claims, strictly in turn. If the next claim
// does not fit, what is free stays free for it. Smaller ones may not pass it, because it
// is not certain that this would not make it wait longer.
func (c nodeQueues) placeQueued() {
	for unit := range c.queues {
		q := &c.queues[unit]
		for {
			claim := q.next()
			if limit := c.opt.Queue.RunLimit; claim == nil || limit > 0 && q.running >= limit {
				break
			}
			c.free.SetQueue(unit, gpu.UnitQueue{})
			fits := c.free.FindPlacement(claim.request(), unit, &claim.Placement)
			c.updateFreeList(unit)
			if !fits {
				claim.Placement = gpu.Placement{}
				break
			}
			c.leaveQueue(claim)
			c.takeResources(claim)
			c.activateQueued(claim)
		}
	}
}

// activateQueued goes on with a claim that has got its resources.
func (c nodeQueues) activateQueued(claim *Claim) {
	c.addEffect(RecordPlacement{claim})
	// else its answer says that it does not wait
	if claim.State == Waiting || !c.sessions.isCurrent(claim.Schedd, claim.session) {
		c.addEffect(ReportReady{claim})
	}
	if claim.State != Waiting {
		return
	}
	if !claim.hasQueuedAttempt() {
		claim.setState(Idle)
		return
	}
	claim.setState(Busy)
	c.addEffect(StartAttempt{claim, claim.Attempt})
}

// yieldResources passes the resources of a claim whose attempt has ended to the next
// claim. It does so if a claim in its unit's queue has something to run. The next task
// then starts now, and not when the schedd has heard of the end of this one. The claim
// goes to the end of the queue.
func (c nodeQueues) yieldResources(claim *Claim) {
	if !claim.CanQueue || claim.endReason != "" || len(claim.Placement.Parts) != 1 {
		return
	}
	unit := claim.Placement.Parts[0].Unit
	if next := c.queues[unit].next(); next != nil && next.hasQueuedAttempt() {
		c.releaseResources(claim)
		claim.Placement = gpu.Placement{}
		c.joinQueue(claim, unit)
	}
}

// rejoinQueue puts an adopted claim that had yielded its resources into a queue again. It
// had yielded them when the previous startd ended.
func (c nodeQueues) rejoinQueue(claim *Claim) {
	unit, ok := c.unitFor(claim.request())
	if !ok || !claim.CanQueue {
		claim.endReason = "what it held is not there any more"
		return
	}
	claim.Placement = gpu.Placement{}
	c.joinQueue(claim, unit)
}

// cancelQueued ends an attempt that waits and will not start.
func (c nodeQueues) cancelQueued(claim *Claim, cause EndCause, reason string) {
	c.addEffect(CancelQueued{claim, claim.Attempt, cause, reason})
	claim.setState(Exited)
	claim.Running, claim.exitedAt = false, c.now
	if claim.endReason != "" {
		c.leaveQueue(claim)
	}
	c.addEffect(ReportExited{claim, claim.Attempt})
	c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
}

// minGap is the least latency to a schedd for which an automatic queue is worthwhile. It
// is a fraction of the run time.
const minGap = 0.01

// queueCapacity is how many may wait for a unit. The paper asks for r+b >= r·μ·τ: with r
// running, each for 1/μ, so many end during the way τ (§3.4.2 (1)). That is enough if
// those that run have just begun. They have not, and any of them may be the next to end;
// so those that end meanwhile are to be there besides, b >= r·μ·τ, unless the way is next
// to nothing against a run.
func (c nodeQueues) queueCapacity(unit int) int {
	o := c.opt.Queue
	switch {
	case o.Auto:
		r := float64(max(c.queues[unit].running, 1))
		if o.RunLimit == 0 && c.queues[unit].running == 0 {
			r = math.Max(c.free.Unit(unit).CPU.Cores(), 1)
		}
		part := c.runtimes.gap().Seconds() / c.runtimes.mean().Seconds()
		if part < minGap {
			return 0
		}
		return min(int(math.Ceil(r*part)), maxQueue)
	case o.Length == 0 && o.MaxWait > 0:
		return maxQueue
	}
	return o.Length
}

// findQueue finds the queue for a request that cannot be placed now. It considers queues
// that have room and whose unit can hold the request alone. It returns the one with the
// shortest predicted wait.
func (c nodeQueues) findQueue(now roost.BootTime, r ClaimRequest) (unit int, wait time.Duration, ok bool) {
	if !r.CanQueue || r.Class != gpu.BatchClass || c.opt.Queue.isOff() {
		return 0, 0, false
	}
	f := c.free.Clone()
	for i := range c.queues {
		q := f.Queue(i)
		q.FreePlaces, q.WaitSeconds = max(c.queueCapacity(i)-q.Length, 0),
			c.predictedWait(now, i, r.request()).Seconds()
		if most := c.opt.Queue.MaxWait; most > 0 && q.WaitSeconds >= most.Seconds() {
			q.FreePlaces = 0
		}
		f.SetQueue(i, q)
	}
	unit, ok = f.QueueableUnit(r.request())
	if ok {
		wait = time.Duration(f.Queue(unit).WaitSeconds * float64(time.Second))
	}
	return unit, wait, ok
}

// predictedWait predicts how long a request would wait in a unit's queue if it came now.
func (c nodeQueues) predictedWait(now roost.BootTime, unit int, r gpu.DeviceRequest) time.Duration {
	var running []RunningTask
	for _, claim := range c.claims.sorted() {
		if claim.hasPlacement && claim.Class == gpu.BatchClass && len(claim.Placement.Parts) > 0 &&
			claim.Placement.Parts[0].Unit == unit {
			running = append(running, RunningTask{claim.Placement, c.runtimes.remaining(now, claim)})
		}
	}
	q := &c.queues[unit]
	waiting := make([]QueuedTask, 0, len(q.claims))
	for _, claim := range q.claims {
		waiting = append(waiting, QueuedTask{claim.request(), c.runtimes.expected(claim)})
	}
	wait, ok := PredictWait(c.free, unit, c.opt.Queue.RunLimit, running, waiting, r)
	if !ok {
		return unknownWait
	}
	return wait
}

// unknownWait stands for a wait for something that no batch task will give back, such as
// what stream tasks hold.
const unknownWait = 24 * time.Hour

// setQueueAttributes puts how the queues stand into what the ad is made of.
func (c nodeQueues) setQueueAttributes(f *gpu.FreeResources) {
	if c.opt.Queue.isOff() {
		return
	}
	for i := range c.queues {
		q := f.Queue(i)
		q.FreePlaces, q.WaitSeconds = max(c.queueCapacity(i)-q.Length, 0),
			c.predictedWait(c.now, i, c.lastBatchRequest).Seconds()
		if most := c.opt.Queue.MaxWait; most > 0 && q.WaitSeconds >= most.Seconds() {
			q.FreePlaces = 0
		}
		f.SetQueue(i, q)
	}
}
