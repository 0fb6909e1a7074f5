package dispatch

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost"
)

// The naive way to find out what time asks for is to look at every claim on every node. A
// schedd has thousands of them, is asked several times a second, and nearly always
// nothing is due. So the deadlines are in heaps:
//
//	due    nodes with claims or claim requests: answers, renewals and ends of leases
//	spare  nodes on which nothing is: their sessions end
//	linger idle claims
//
// A claim that goes mostly leaves the deadline of its node as it is, and to find that out
// takes a look at all others on it. Therefore a deadline may come early (vague) until its
// node is next in turn: mark.at <= deadline(node), and == unless it is vague. What is
// done to a node for which nothing is due is nothing, so one too many in a Tick does no
// harm, and one too few would: touched are those on which something has begun or ceased
// to be held since the last.

// deadlineTimer is a place in an agenda.
type deadlineTimer struct {
	at      roost.BootTime // not later than when something is due
	inexact bool           // it may be sooner than that
	heap    *deadlineHeap  // nil: none
	index   int            // there
	node    *nodeState     // whose it is
	claim   *Claim         // or this one's
}

// deadlineHeap is a heap of what waits for time.
type deadlineHeap []*deadlineTimer

func (a deadlineHeap) Len() int           { return len(a) }
func (a deadlineHeap) Less(i, j int) bool { return a[i].at < a[j].at }
func (a deadlineHeap) Swap(i, j int)      { a[i], a[j] = a[j], a[i]; a[i].index, a[j].index = i, j }

// Push implements heap.Interface.
func (a *deadlineHeap) Push(x any) {
	m := x.(*deadlineTimer)
	m.heap, m.index = a, len(*a)
	*a = append(*a, m)
}

// Pop implements heap.Interface.
func (a *deadlineHeap) Pop() any {
	last := len(*a) - 1
	m := (*a)[last]
	m.heap, (*a)[last] = nil, nil
	*a = (*a)[:last]
	return m
}

// schedule has a mark stand in an agenda with an instant.
func (a *deadlineHeap) schedule(m *deadlineTimer, at roost.BootTime) {
	m.at, m.inexact = at, false
	if m.heap == a {
		heap.Fix(a, m.index)
		return
	}
	m.cancel()
	heap.Push(a, m)
}

// cancel takes a mark from where it stands.
func (m *deadlineTimer) cancel() {
	if m.heap != nil {
		heap.Remove(m.heap, m.index)
	}
}

// claimCount is how much is held on a node or asked for.
func (n *nodeState) claimCount() int { return len(n.claims) + len(n.requested) }

// deadlineSchedule is the part of the dispatcher that knows what waits for time.
type deadlineSchedule struct{ *Dispatcher }

func (d *Dispatcher) deadlines() deadlineSchedule { return deadlineSchedule{d} }

// deadline is when something is due on a node; MaxInt64 if nothing is.
func (d deadlineSchedule) deadline(n *nodeState) roost.BootTime {
	at := roost.BootTime(math.MaxInt64)
	for _, c := range n.requested {
		due, _ := d.answerDeadline(n, c)
		at = min(at, due)
	}
	if n.connected {
		at = min(at, n.renewedAt+d.renewEvery(n))
	} else {
		for _, c := range n.claims {
			at = min(at, c.awayDeadline(n.awaySince, d.options.KillGrace))
		}
	}
	if n.claimCount() == 0 && n.emptySince != 0 {
		at = min(at, n.emptySince+d.options.RenewEvery)
	}
	return at
}

// How many times RequestTimeout a request waits here, or at its node, while the node
// answers others. Then the negotiator finds another place for it.
const (
	maxUnsentTimeouts = 5
	maxSentTimeouts   = 1
)

// answerDeadline returns when a request that has no answer is given up, and why. A node
// that answers others is only slow, and one that answers none is silent.
func (d deadlineSchedule) answerDeadline(n *nodeState, c *Claim) (at roost.BootTime, reason string) {
	since, most := c.stateSince, maxUnsentTimeouts*d.options.RequestTimeout
	if c.requestSent {
		since, most = min(c.leaseSent, since+most), maxSentTimeouts*d.options.RequestTimeout
	}
	if n.answeredAt > since+most {
		return since + most + d.options.RequestTimeout, BusyNode
	}
	return max(since, n.answeredAt) + d.options.RequestTimeout, SilentNode
}

// scheduleNode puts a node where it belongs.
func (d deadlineSchedule) scheduleNode(n *nodeState) {
	to := &d.nodeDeadlines
	if n.claimCount() == 0 {
		to = &d.unusedNodes
	}
	to.schedule(&n.timer, d.deadline(n))
}

// markDirty has the next tick look at a node.
func (d deadlineSchedule) markDirty(n *nodeState) {
	if !n.dirty {
		n.dirty = true
		d.dirtyNodes = append(d.dirtyNodes, n)
	}
}

// noteAdded notes what has come to a node, or was asked for.
func (d deadlineSchedule) noteAdded(n *nodeState, c *Claim) {
	at := c.awayDeadline(n.awaySince, d.options.KillGrace)
	switch {
	case c.ID == 0:
		at, _ = d.answerDeadline(n, c)
	case n.connected:
		at = n.renewedAt + min(d.options.RenewEvery, c.Lease/4)
	}
	switch {
	case n.timer.heap == &d.unusedNodes:
		d.markDirty(n)
		d.scheduleNode(n)
	case n.timer.heap == &d.nodeDeadlines && at < n.timer.at:
		n.timer.at = at
		heap.Fix(&d.nodeDeadlines, n.timer.index)
	}
}

// noteRemoved notes that something has gone from a node.
func (d deadlineSchedule) noteRemoved(n *nodeState) {
	if n.timer.inexact = true; n.claimCount() == 0 && n.timer.heap == &d.nodeDeadlines {
		d.markDirty(n)
		d.scheduleNode(n)
	}
}

// removeNode forgets a node.
func (d deadlineSchedule) removeNode(n *nodeState) {
	delete(d.nodes, n.name)
	n.timer.cancel()
	if n.dirty {
		d.dirtyNodes = slices.DeleteFunc(d.dirtyNodes, func(o *nodeState) bool { return o == n })
	}
}

// nextDeadline is the first of the agenda, when it is certain that it is; nil for an
// empty one.
func (d deadlineSchedule) nextDeadline(a *deadlineHeap) *deadlineTimer {
	for len(*a) > 0 && (*a)[0].inexact {
		a.schedule((*a)[0], d.deadline((*a)[0].node))
	}
	if len(*a) == 0 {
		return nil
	}
	return (*a)[0]
}

// dueNodes are the nodes that a tick has to look at, by name. They stand nowhere until
// plan puts them back.
func (d deadlineSchedule) dueNodes(now roost.BootTime) (nodes []*nodeState) {
	for _, a := range []*deadlineHeap{&d.nodeDeadlines, &d.unusedNodes} {
		for m := d.nextDeadline(a); m != nil && m.at <= now; m = d.nextDeadline(a) {
			m.cancel()
			nodes = append(nodes, m.node)
		}
	}
	for _, n := range d.dirtyNodes {
		n.dirty = false
		n.timer.cancel()
		nodes = append(nodes, n)
	}
	clear(d.dirtyNodes)
	d.dirtyNodes = d.dirtyNodes[:0]
	slices.SortFunc(nodes, func(a, b *nodeState) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(nodes)
}

// expiredIdleClaims returns the idle claims whose idle deadlines have passed. They are in
// the order of their requests, and of one request in the order in which they became idle.
func (d deadlineSchedule) expiredIdleClaims(now roost.BootTime) (claims []*Claim) {
	for len(d.idleDeadlines) > 0 && d.idleDeadlines[0].at <= now {
		m := d.idleDeadlines[0]
		m.cancel()
		claims = append(claims, m.claim)
	}
	slices.SortFunc(claims, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.idleOrder, b.idleOrder))
	})
	return claims
}

// scheduleIdle has a claim wait for another task of its request.
func (d deadlineSchedule) scheduleIdle(c *Claim) {
	d.idleCounter++
	c.idleOrder = d.idleCounter
	d.idle[c.Request] = append(d.idle[c.Request], c)
	c.timer.claim = c
	d.idleDeadlines.schedule(&c.timer, d.idleUntil(c))
}

// idleUntil is until when an idle claim waits.
func (d deadlineSchedule) idleUntil(c *Claim) roost.BootTime {
	return max(c.stateSince+d.options.IdleTimeout, c.reservedUntil)
}

// checkDeadlines panics when an agenda contradicts the books.
func (d deadlineSchedule) checkDeadlines() {
	idle := 0
	for _, list := range d.idle {
		idle += len(list)
		for _, c := range list {
			if c.timer.heap != &d.idleDeadlines || c.timer.at != d.idleUntil(c) {
				panic(fmt.Sprintf("dispatch: %v is idle until %v, and the agenda has %v", c, d.idleUntil(c),
					c.timer.at))
			}
		}
	}
	if idle != len(d.idleDeadlines) || len(d.nodes) != len(d.nodeDeadlines)+len(d.unusedNodes) {
		panic(fmt.Sprintf("dispatch: %d idle claims and %d nodes, and the agendas have %d, %d and %d", idle,
			len(d.nodes), len(d.idleDeadlines), len(d.nodeDeadlines), len(d.unusedNodes)))
	}
	for _, n := range d.nodes {
		m, empty, at := &n.timer, n.claimCount() == 0, d.deadline(n)
		if m.heap == nil || (m.heap == &d.unusedNodes) != empty || m.at > at || m.at < at && !m.inexact || m.node != n {
			panic(fmt.Sprintf("dispatch: something is due on %s at %v, and the agenda has %+v", n.name, at, m))
		}
		if empty != (n.emptySince != 0) && !n.dirty {
			panic(fmt.Sprintf("dispatch: %d claims on %s, which is empty since %v, and no tick will know",
				n.claimCount(), n.name, n.emptySince))
		}
	}
	for _, a := range []deadlineHeap{d.nodeDeadlines, d.unusedNodes, d.idleDeadlines} {
		for i, m := range a {
			if m.index != i || i > 0 && m.at < a[(i-1)/2].at {
				panic(fmt.Sprintf("dispatch: the agenda is not in order at %d of %d", i, len(a)))
			}
		}
	}
}
