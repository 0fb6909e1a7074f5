package dispatch

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
)

// The naive way to find out what time asks for is to look at every claim on every node. A schedd has thousands of them, is asked several times a second, and
// nearly always nothing is due. So what waits for time stands in heaps:
//
//	due    nodes on which something is held or asked for: what is asked for is answered, leases are renewed, or they run out
//	spare  nodes on which nothing is: their sessions end
//	linger idle claims
//
// A claim that goes mostly leaves the deadline of its node as it is, and to find that out takes a look at all others on it. Therefore a deadline may come early
// (vague) until its node is next in turn: mark.at <= deadline(node), and == unless it is vague. What is done to a node for which nothing is due is nothing, so one
// too many in a Tick does no harm, and one too few would: touched are those on which something has begun or ceased to be held since the last.

// mark is a place in an agenda.
type mark struct {
	at    Instant // not later than when something is due
	vague bool    // it may be sooner than that
	on    *agenda // nil: none
	place int     // there
	node  *node   // whose it is
	claim *Claim  // or this one's
}

// agenda is a heap of what waits for time.
type agenda []*mark

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i]; a[i].place, a[j].place = i, j }

// Push implements heap.Interface.
func (a *agenda) Push(x any) {
	m := x.(*mark)
	m.on, m.place = a, len(*a)
	*a = append(*a, m)
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	m := (*a)[last]
	m.on, (*a)[last] = nil, nil
	*a = (*a)[:last]
	return m
}

// put has a mark stand in an agenda with an instant.
func (a *agenda) put(m *mark, at Instant) {
	m.at, m.vague = at, false
	if m.on == a {
		heap.Fix(a, m.place)
		return
	}
	m.drop()
	heap.Push(a, m)
}

// drop takes a mark from where it stands.
func (m *mark) drop() {
	if m.on != nil {
		heap.Remove(m.on, m.place)
	}
}

// held is how much is held on a node or asked for.
func (n *node) held() int { return len(n.claims) + len(n.asked) }

// deadline is when something is due on a node; MaxInt64 if nothing is.
func (d *Dispatcher) deadline(n *node) Instant {
	at := Instant(math.MaxInt64)
	for _, c := range n.asked {
		at = min(at, c.since+d.opt.AskTimeout)
	}
	if n.connected {
		at = min(at, n.renewed+d.renewEvery(n))
	} else {
		for _, c := range n.claims {
			at = min(at, c.lapses(d.opt.KillGrace))
		}
	}
	if n.held() == 0 && n.emptySince != 0 {
		at = min(at, n.emptySince+d.opt.RenewEvery)
	}
	return at
}

// plan puts a node where it belongs.
func (d *Dispatcher) plan(n *node) {
	to := &d.due
	if n.held() == 0 {
		to = &d.spare
	}
	to.put(&n.mark, d.deadline(n))
}

// touch has the next tick look at a node.
func (d *Dispatcher) touch(n *node) {
	if !n.touched {
		n.touched = true
		d.touched = append(d.touched, n)
	}
}

// added notes what has come to a node, or was asked for.
func (d *Dispatcher) added(n *node, c *Claim) {
	at := c.lapses(d.opt.KillGrace)
	switch {
	case c.ID == 0:
		at = c.since + d.opt.AskTimeout
	case n.connected:
		at = n.renewed + min(d.opt.RenewEvery, c.Lease/4)
	}
	switch {
	case n.mark.on == &d.spare:
		d.touch(n)
		d.plan(n)
	case n.mark.on == &d.due && at < n.mark.at:
		n.mark.at = at
		heap.Fix(&d.due, n.mark.place)
	}
}

// removed notes that something has gone from a node.
func (d *Dispatcher) removed(n *node) {
	if n.mark.vague = true; n.held() == 0 && n.mark.on == &d.due {
		d.touch(n)
		d.plan(n)
	}
}

// drop forgets a node.
func (d *Dispatcher) drop(n *node) {
	delete(d.nodes, n.name)
	n.mark.drop()
	if n.touched {
		d.touched = slices.DeleteFunc(d.touched, func(o *node) bool { return o == n })
	}
}

// next is the first of the agenda, when it is certain that it is; nil for an empty one.
func (d *Dispatcher) next(a *agenda) *mark {
	for len(*a) > 0 && (*a)[0].vague {
		a.put((*a)[0], d.deadline((*a)[0].node))
	}
	if len(*a) == 0 {
		return nil
	}
	return (*a)[0]
}

// dueNodes are the nodes that a tick has to look at, by name. They stand nowhere until plan puts them back.
func (d *Dispatcher) dueNodes(now Instant) (nodes []*node) {
	for _, a := range []*agenda{&d.due, &d.spare} {
		for m := d.next(a); m != nil && m.at <= now; m = d.next(a) {
			m.drop()
			nodes = append(nodes, m.node)
		}
	}
	for _, n := range d.touched {
		n.touched = false
		n.mark.drop()
		nodes = append(nodes, n)
	}
	clear(d.touched)
	d.touched = d.touched[:0]
	slices.SortFunc(nodes, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(nodes)
}

// lingered are the idle claims that have waited for long enough, in the order of their requests, and of their coming.
func (d *Dispatcher) lingered(now Instant) (claims []*Claim) {
	for len(d.linger) > 0 && d.linger[0].at <= now {
		m := d.linger[0]
		m.drop()
		claims = append(claims, m.claim)
	}
	slices.SortFunc(claims, func(a, b *Claim) int { return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.turn, b.turn)) })
	return claims
}

// idles has a claim wait for another task of its request.
func (d *Dispatcher) idles(c *Claim) {
	d.turns++
	c.turn = d.turns
	d.idle[c.Request] = append(d.idle[c.Request], c)
	c.mark.claim = c
	d.linger.put(&c.mark, d.lingers(c))
}

// lingers is until when an idle claim waits.
func (d *Dispatcher) lingers(c *Claim) Instant { return max(c.since+d.opt.Linger, c.keepUntil) }

// checkAgenda panics when an agenda contradicts the books.
func (d *Dispatcher) checkAgenda() {
	idle := 0
	for _, list := range d.idle {
		idle += len(list)
		for _, c := range list {
			if c.mark.on != &d.linger || c.mark.at != d.lingers(c) {
				panic(fmt.Sprintf("dispatch: %v is idle until %v, and the agenda has %v", c, d.lingers(c), c.mark.at))
			}
		}
	}
	if idle != len(d.linger) || len(d.nodes) != len(d.due)+len(d.spare) {
		panic(fmt.Sprintf("dispatch: %d idle claims and %d nodes, and the agendas have %d, %d and %d", idle, len(d.nodes), len(d.linger), len(d.due), len(d.spare)))
	}
	for _, n := range d.nodes {
		m, empty, at := &n.mark, n.held() == 0, d.deadline(n)
		if m.on == nil || (m.on == &d.spare) != empty || m.at > at || m.at < at && !m.vague || m.node != n {
			panic(fmt.Sprintf("dispatch: something is due on %s at %v, and the agenda has %+v", n.name, at, m))
		}
		if empty != (n.emptySince != 0) && !n.touched {
			panic(fmt.Sprintf("dispatch: %d claims on %s, which is empty since %v, and no tick will know", n.held(), n.name, n.emptySince))
		}
	}
	for _, a := range []agenda{d.due, d.spare, d.linger} {
		for i, m := range a {
			if m.place != i || i > 0 && m.at < a[(i-1)/2].at {
				panic(fmt.Sprintf("dispatch: the agenda is not in order at %d of %d", i, len(a)))
			}
		}
	}
}
