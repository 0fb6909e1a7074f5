package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// RecoveredAttempt is an attempt that the log knows as begun and not as ended, when the
// schedd starts.
type RecoveredAttempt struct {
	Attempt   roost.AttemptID
	Request   RequestID
	Node      string
	Address   string
	Claim     uint64
	Started   bool
	Resources roost.Resources
	Alloc     roost.TaskID // that holds the alloc inside which it is; zero: it is inside none
	// the claim of that, if it is live
	AllocClaim uint64
}

// Adopt takes up the attempts that were under way when the schedd stopped. When their
// leases were last sent is not known; it was before now.
func (d *Dispatcher) Adopt(now roost.BootTime, live []RecoveredAttempt) {
	for _, l := range live {
		n := d.findOrAddNode(now, l.Node, l.Address)
		c := &Claim{
			ID: l.Claim, Node: l.Node, Request: l.Request, Resources: l.Resources, State: Busy, Running: l.Started,
			Attempt: l.Attempt,
			Lease:   leaseAt(d, l.Node, l.Request), acceptedAt: now, stateSince: now, leaseSent: now, adopted: true,
			alloc: l.Alloc,
		}
		c.Grant.Alloc = l.AllocClaim
		c.silence = d.jobQueue.SilenceRules(l.Request)
		if mutant.Active(mutant.LeasesExpireOnRestart) {
			c.leaseSent -= c.Lease
		}
		d.busy[l.Attempt.Task] = c
		n.awaySince = now
		d.addToNode(n, c)
	}
}

// ReportedClaim is one claim that a node says it holds for this schedd.
type ReportedClaim struct {
	Claim     uint64
	Grant     roost.GrantID
	Attempt   roost.AttemptID // zero: the claim is idle
	Running   bool
	Waiting   bool   // the claim has no resources now
	Placement string // see ClaimReply
	Exited    bool   // ended there, and not acknowledged; the caller passes the exit on to Exited afterwards
}

// Connected compares the schedd's records with the claims that a node reports on a new
// session. A claim that the node does not list is lost permanently. A claim that the
// records do not contain is given back.
func (d *Dispatcher) Connected(now roost.BootTime, nodeName string, present []ReportedClaim) {
	n := d.nodes[nodeName]
	if n == nil {
		n = d.findOrAddNode(now, nodeName, "")
	}
	n.connected, n.awaySince = true, 0
	n.lastMessage, n.lastMessageAt = 0, now
	n.sent, n.unsent = 0, nil
	for _, c := range n.requested {
		c.requestSent = false
	}
	n.timer.inexact = true
	listed := make(map[uint64]bool, len(present))
	for _, p := range present {
		listed[p.Claim] = true
		d.reconcile(now, n, p)
	}
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		if c := n.claims[id]; !listed[id] {
			d.loseClaim(c, "the node no longer has it")
		}
	}
	for _, c := range sortedAsked(n) {
		d.requestClaim(now, n, c)
	}
	allocsOf(d).nodeAnswers(n)
	d.renew(now, n)
}

// NeverArrived is the reason for a loss that proves that nothing of the attempt has run.
// The node has its claim, and was never told of the attempt.
const NeverArrived = "it never reached the node"

func (d *Dispatcher) reconcile(now roost.BootTime, n *nodeState, p ReportedClaim) {
	c := n.claims[p.Claim]
	switch {
	case c == nil && d.requested[p.Grant] != nil && p.Attempt == (roost.AttemptID{}):
		// the answer was lost with the old session
		d.ClaimAnswered(now, n.name, ClaimReply{Grant: p.Grant, Claim: p.Claim, Waiting: p.Waiting,
			Placement: p.Placement})
	case c == nil:
		if p.Attempt != (roost.AttemptID{}) {
			d.discardUnknown(n, p)
		}
		d.emit(ReleaseClaim{n.name, p.Claim})
	case p.Attempt == c.Attempt && (c.State == Busy || c.State == Exited):
		c.Running = c.Running || p.Running
		if c.silence.NotedAfter > 0 && c.State == Busy {
			d.jobQueue.RecordReturn(c.Attempt)
		}
		c.Placement, c.Grant.GrantID = p.Placement, p.Grant
		if p.Waiting != c.Waiting {
			d.setWaiting(c, p.Waiting, now, 0)
		}
		if c.vacating && c.State == Busy && !p.Exited {
			d.emit(VacateAttempt{n.name, c.Attempt,
				VacateOrder{Checkpoint: c.withCheckpoint, Reason: "asked for while the node was away"}})
		}
	case p.Attempt == (roost.AttemptID{}) && c.State == Restarting:
		c.Placement, c.Grant.GrantID = p.Placement, p.Grant
	case p.Attempt == (roost.AttemptID{}): // the activation never arrived
		d.loseClaim(c, NeverArrived)
		d.emit(ReleaseClaim{n.name, p.Claim})
	default:
		d.discardUnknown(n, p)
		d.loseClaim(c, "the node runs something else in its place")
		d.emit(ReleaseClaim{n.name, p.Claim})
	}
}

// discardUnknown ends an attempt that the books do not know, unless it has ended.
func (d *Dispatcher) discardUnknown(n *nodeState, p ReportedClaim) {
	if p.Exited {
		d.emit(AcknowledgeExit{n.name, p.Attempt})
	} else {
		d.emit(VacateAttempt{n.name, p.Attempt, VacateOrder{WithoutNotice: true, Reason: "superseded"}})
	}
}

func sortedAsked(n *nodeState) []*Claim {
	return slices.SortedFunc(maps.Values(n.requested), func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(a.Grant.Epoch, b.Grant.Epoch), cmp.Compare(a.Grant.ID, b.Grant.ID))
	})
}

// Disconnected notes that a session broke. Idle claims are dropped, for nothing can be
// put on them; busy ones wait for the node or for the end of their leases.
func (d *Dispatcher) Disconnected(now roost.BootTime, nodeName string) {
	n := d.nodes[nodeName]
	if n == nil || !n.connected {
		return
	}
	n.connected, n.awaySince = false, now
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		c := n.claims[id]
		c.silenceNoted = false
		if c.State == Idle || c.State == Restarting {
			d.removeClaim(c)
		}
	}
	d.deadlines().scheduleNode(n)
}

// NoteSilence notes that a node whose session has just broken was silent for a while
// before. What may happen after a silence counts from its last word.
func NoteSilence(d *Dispatcher, nodeName string, silent time.Duration) {
	n := d.nodes[nodeName]
	if n == nil || n.connected || n.awaySince == 0 || silent <= 0 {
		return
	}
	n.awaySince = max(n.awaySince-silent, 1)
	d.deadlines().scheduleNode(n)
}

// Tick does what time asks for.
func (d *Dispatcher) Tick(now roost.BootTime) {
	for _, c := range d.deadlines().expiredIdleClaims(now) {
		d.release(c)
	}
	d.assembly().expireGangs(now)
	allocsOf(d).endDelays(now)
	for _, n := range d.deadlines().dueNodes(now) {
		d.expireLeases(now, n)
		if n.connected && now-n.renewedAt >= d.renewEvery(n) {
			d.renew(now, n)
		}
		if d.disconnectIdle(now, n); d.nodes[n.name] == n {
			d.deadlines().scheduleNode(n)
		}
	}
}

// expireLeases gives up what can no longer be alive, and grants that nobody answers.
func (d *Dispatcher) expireLeases(now roost.BootTime, n *nodeState) {
	for _, c := range sortedAsked(n) {
		if at, reason := d.deadlines().answerDeadline(n, c); now >= at {
			d.removeClaim(c)
			if c.isInside() {
				allocsOf(d).refused(now, c.alloc, reason)
				continue
			}
			d.emit(GrantResult{Grant: c.Grant.GrantID, Request: c.Request, Reason: reason})
		}
	}
	sendRequests(d, now, n)
	if n.connected {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		c := n.claims[id]
		d.deadlines().noteSilence(now, n, c)
		if now >= c.lostAt(n.awaySince, d.options.KillGrace) {
			why := "its node was away for longer than the lease"
			if c.silence.Overlap && now < c.leaseEnd(d.options.KillGrace) {
				why = "its node was silent for longer than lost_after, and may run it still"
			}
			d.loseClaim(c, why)
		}
	}
}

// noteSilence tells the queue of an attempt whose node has been silent for a while.
func (d deadlineSchedule) noteSilence(now roost.BootTime, n *nodeState, c *Claim) {
	if at, ok := c.silenceDue(n.awaySince); ok && now >= at {
		c.silenceNoted = true
		if c.State == Busy {
			d.jobQueue.RecordSilence(c.Attempt, n.name)
		}
	}
}

// disconnectIdle ends the session with a node on which nothing has been held for a while.
func (d *Dispatcher) disconnectIdle(now roost.BootTime, n *nodeState) {
	if len(n.claims)+len(n.requested) > 0 {
		n.emptySince = 0
		return
	}
	if n.emptySince == 0 {
		n.emptySince = now
	}
	if now-n.emptySince >= d.options.RenewEvery {
		d.deadlines().removeNode(n)
		d.emit(DisconnectNode{n.name})
	}
}

// renewEvery is a quarter of the shortest lease on the node, and no longer than the
// options say.
func (d *Dispatcher) renewEvery(n *nodeState) roost.BootTime {
	every := d.options.RenewEvery
	for _, c := range n.claims {
		every = min(every, c.Lease/4)
	}
	return every
}

func (d *Dispatcher) renew(now roost.BootTime, n *nodeState) {
	n.renewedAt = now
	for _, c := range n.claims {
		c.leaseSent = now
	}
	d.deadlines().scheduleNode(n)
	if len(n.claims) == 0 {
		return
	}
	d.emit(RenewLeases{n.name, n.lastMessage, now - n.lastMessageAt})
}

// LeaseRenewed takes a node's word that it has let the leases go on, by its number on the
// present session.
func (d *Dispatcher) LeaseRenewed(now roost.BootTime, nodeName string, word uint64) {
	if n := d.nodes[nodeName]; n != nil && n.connected && word > n.lastMessage {
		n.lastMessage, n.lastMessageAt = word, now
	}
}

// NextTick is the instant at which Tick should be called next; ok is false when nothing
// waits for time.
func (d *Dispatcher) NextTick(now roost.BootTime) (at roost.BootTime, ok bool) {
	consider := func(t roost.BootTime) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if len(d.idleDeadlines) > 0 {
		consider(d.idleDeadlines[0].at)
	}
	for _, of := range d.gangs {
		consider(of.deadline(d.options))
	}
	for _, refusal := range d.inside.delayed {
		consider(refusal.until)
	}
	if m := d.deadlines().nextDeadline(&d.nodeDeadlines); m != nil {
		consider(m.at)
	}
	if len(d.unusedNodes) > 0 { // their sessions need not end to the second
		consider(now + d.options.RenewEvery)
	}
	return at, ok
}
