package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// A claim may be accepted waiting: it has no resources yet, and gets them when those
// before it in the queue of its machine are done (HRM §3.3). It takes its first task at
// once, and the machine starts that when the time has come. So the task is bound to the
// machine, and another that falls idle meanwhile would not do it any good. Therefore a
// task that has waited for a while, and is to wait for a while yet, is wanted once more,
// only for what starts at once: when a claim for it is there, the task is taken back from
// where it waits, and runs here. Each move needs a claim with room, so nothing is moved
// to and fro.

// ClaimReply is a startd's answer to a wish for a claim.
type ClaimReply struct {
	Grant      roost.GrantID
	Claim      uint64 // the startd's id; 0 for a refusal
	AdSequence uint64
	Reason     string // of a refusal
	Waiting    bool   // the claim waits for its resources
	WaitTime   time.Duration
	Placement  string                  // what the claim was given, in a form that the dispatcher does not look into
	Displaced  []roost.PreemptionParty // whose attempts are told to end for it
}

// Allocated notes that a claim that waited has got its resources.
func (d *Dispatcher) Allocated(now roost.BootTime, nodeName string, id uint64, placed string) {
	n := d.nodes[nodeName]
	if n == nil || n.claims[id] == nil {
		return
	}
	c := n.claims[id]
	if c.Waiting && c.yieldedAt == 0 {
		c.acceptedAt = now // only now does it begin to keep others from what it holds
	}
	c.Placement = placed
	d.setWaiting(c, false, now, 0)
	if c.gang != nil && c.State == Idle {
		d.assembly().startGang(now, c.gang)
	}
}

// Placement says what the claim of an attempt was given, as its startd told it.
func (d *Dispatcher) Placement(a roost.AttemptID) string {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a {
		return c.Placement
	}
	return ""
}

// TakeDisplaced returns who was displaced for the claim of an attempt, and forgets it. So
// only the first attempt on a claim has displaced others.
func TakeDisplaced(d *Dispatcher, a roost.AttemptID) (all []roost.PreemptionParty) {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a {
		all, c.displaced = c.displaced, nil
	}
	return all
}

// Yielded notes that a claim that ended an attempt gave its resources to one that waited,
// and waits now itself.
func (d *Dispatcher) Yielded(now roost.BootTime, nodeName string, a roost.AttemptID) {
	if c := d.busy[a.Task]; c != nil && c.Node == nodeName && c.Attempt == a {
		d.setWaiting(c, true, now, 0)
		c.yieldedAt = now
	}
}

// setWaiting notes whether a claim waits, and for how long yet, as predicted; 0 unknown.
func (d *Dispatcher) setWaiting(c *Claim, waiting bool, now roost.BootTime, wait time.Duration) {
	list := slices.DeleteFunc(d.waiting[c.Request], func(o *Claim) bool { return o == c })
	if waiting {
		list = append(list, c)
		c.waitSince, c.readyAt = now, 0
		if wait > 0 {
			c.readyAt = now + wait
		}
	}
	c.Waiting = waiting
	if d.waiting[c.Request] = list; len(list) == 0 {
		delete(d.waiting, c.Request)
	}
}

// Movable counts the tasks of a request that have waited on a machine long enough to be
// moved.
func (d *Dispatcher) Movable(now roost.BootTime, r RequestID) (n int) {
	for _, c := range d.waiting[r] {
		if d.isMovable(now, c) {
			n++
		}
	}
	return n
}

func (d *Dispatcher) isMovable(now roost.BootTime, c *Claim) bool {
	return c.State == Busy && !c.Running && !c.vacating && d.nodes[c.Node].connected &&
		now-c.waitSince >= d.options.MoveAfter &&
		(c.readyAt == 0 || c.readyAt-now >= d.options.MoveAfter || now-c.readyAt >= d.options.MoveAfter) &&
		d.jobQueue.IsMovable(c.Attempt)
}

// WaitingRequests lists the requests of which tasks wait on machines.
func (d *Dispatcher) WaitingRequests() []RequestID { return slices.Sorted(maps.Keys(d.waiting)) }

// WaitsOn says where a task waits, since when, and until when, as predicted: 0 unknown.
func (d *Dispatcher) WaitsOn(t roost.TaskID) (node string, since, ready roost.BootTime, ok bool) {
	c := d.busy[t]
	if c == nil || !c.Waiting || c.State != Busy {
		return "", 0, 0, false
	}
	return c.Node, c.waitSince, c.readyAt, true
}

// moveWaiting takes a restless task back for an idle claim with resources: of several the
// one that would wait longest.
func (d *Dispatcher) moveWaiting(now roost.BootTime, to *Claim) {
	var from *Claim
	for _, c := range d.waiting[to.Request] {
		if c.Node != to.Node && d.isMovable(now, c) && (from == nil || c.readyAt > from.readyAt) {
			from = c
		}
	}
	if from == nil {
		return
	}
	from.releaseAtEnd, to.reservedUntil = true, now+d.options.RequestTimeout
	d.idleDeadlines.schedule(&to.timer, d.deadlines().idleUntil(to))
	d.Vacate(from.Attempt, VacateOrder{WithoutNotice: true,
		Reason: "it waited on " + from.Node + ", and " + to.Node + " can start it at once"})
}
