package dispatch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
)

// Live is an attempt that the log knows as begun and not as ended, when the schedd starts.
type Live struct {
	Attempt roost.AttemptID
	Request RequestID
	Node    string
	Address string
	Claim   uint64
	Started bool
	Holds   roost.Resources
}

// Adopt takes up the attempts that were under way when the schedd stopped. When their leases were last sent is not known; it was before now.
func (d *Dispatcher) Adopt(now Instant, live []Live) {
	for _, l := range live {
		n := d.node(now, l.Node, l.Address)
		c := &Claim{
			ID: l.Claim, Node: l.Node, Request: l.Request, Resources: l.Holds, State: Busy, Running: l.Started, Attempt: l.Attempt,
			Lease: d.work.Lease(l.Request), made: now, since: now, leaseSent: now, adopted: true,
		}
		if plant.Is(plant.LostLease) {
			c.leaseSent -= c.Lease
		}
		d.busy[l.Attempt.Task] = c
		n.away = now
		d.hold(n, c)
	}
}

// Present is one claim that a node says it holds for this schedd.
type Present struct {
	Claim   uint64
	Grant   GrantID
	Attempt roost.AttemptID // zero: the claim is idle
	Running bool
	Waiting bool   // the claim has no resources now
	Placed  string // see Reply
	Exited  bool   // ended there, and not acknowledged; the caller passes the exit on to Exited afterwards
}

// Connected compares the books with what the node has, on a new session: what the node does not list is gone for ever, and what the books
// do not know is given back.
func (d *Dispatcher) Connected(now Instant, nodeName string, present []Present) {
	n := d.nodes[nodeName]
	if n == nil {
		n = d.node(now, nodeName, "")
	}
	n.connected, n.away = true, 0
	n.heard, n.heardAt = 0, now
	listed := make(map[uint64]bool, len(present))
	for _, p := range present {
		listed[p.Claim] = true
		d.reconcile(now, n, p)
	}
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		if c := n.claims[id]; !listed[id] {
			d.lose(c, "the node has it no more")
		}
	}
	for _, c := range sortedAsked(n) {
		c.told = false
		d.ask(now, n, c)
	}
	d.renew(now, n)
}

func (d *Dispatcher) reconcile(now Instant, n *node, p Present) {
	c := n.claims[p.Claim]
	switch {
	case c == nil && d.asked[p.Grant] != nil && p.Attempt == (roost.AttemptID{}):
		d.ClaimAnswered(now, n.name, Reply{Grant: p.Grant, Claim: p.Claim, Waiting: p.Waiting, Placed: p.Placed}) // the answer was lost with the old session
	case c == nil:
		if p.Attempt != (roost.AttemptID{}) {
			d.abandon(n, p)
		}
		d.emit(Release{n.name, p.Claim})
	case p.Attempt == c.Attempt && (c.State == Busy || c.State == Returning):
		c.Running = c.Running || p.Running
		c.Placed, c.Grant.GrantID = p.Placed, p.Grant
		if p.Waiting != c.Waiting {
			d.waits(c, p.Waiting, now, 0)
		}
		if c.vacating && c.State == Busy && !p.Exited {
			d.emit(Vacate{n.name, c.Attempt, VacateOrder{Keep: c.keep, Reason: "asked for while the node was away"}})
		}
	case p.Attempt == (roost.AttemptID{}): // the activation never arrived
		d.lose(c, "it never reached the node")
		d.emit(Release{n.name, p.Claim})
	default:
		d.abandon(n, p)
		d.lose(c, "the node runs something else in its place")
		d.emit(Release{n.name, p.Claim})
	}
}

// abandon ends an attempt that the books do not know, unless it has ended.
func (d *Dispatcher) abandon(n *node, p Present) {
	if p.Exited {
		d.emit(Acknowledge{n.name, p.Attempt})
	} else {
		d.emit(Vacate{n.name, p.Attempt, VacateOrder{Fast: true, Reason: "superseded"}})
	}
}

func sortedAsked(n *node) []*Claim {
	return slices.SortedFunc(maps.Values(n.asked), func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(a.Grant.Epoch, b.Grant.Epoch), cmp.Compare(a.Grant.ID, b.Grant.ID))
	})
}

// Disconnected notes that a session broke. Idle claims are dropped, for nothing can be put on them; busy ones wait for the node or for
// the end of their leases.
func (d *Dispatcher) Disconnected(now Instant, nodeName string) {
	n := d.nodes[nodeName]
	if n == nil || !n.connected {
		return
	}
	n.connected, n.away = false, now
	d.plan(n)
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		if c := n.claims[id]; c.State == Idle {
			d.forget(c)
		}
	}
}

// Tick does what time asks for.
func (d *Dispatcher) Tick(now Instant) {
	for _, c := range d.lingered(now) {
		d.release(c)
	}
	d.tickGangs(now)
	for _, n := range d.dueNodes(now) {
		d.lapse(now, n)
		if n.connected && now-n.renewed >= d.renewEvery(n) {
			d.renew(now, n)
		}
		if d.leave(now, n); d.nodes[n.name] == n {
			d.plan(n)
		}
	}
}

// lapse gives up what can no longer be alive, and grants that nobody answers.
func (d *Dispatcher) lapse(now Instant, n *node) {
	for _, c := range sortedAsked(n) {
		if now-c.since >= d.opt.AskTimeout {
			d.forget(c)
			d.emit(Answer{Grant: c.Grant.GrantID, Request: c.Request, Reason: "the node does not answer"})
		}
	}
	if n.connected {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(n.claims)) {
		if c := n.claims[id]; now >= c.lapses(d.opt.KillGrace) {
			d.lose(c, "its node was away for longer than the lease")
		}
	}
}

// leave ends the session with a node on which nothing has been held for a while.
func (d *Dispatcher) leave(now Instant, n *node) {
	if len(n.claims)+len(n.asked) > 0 {
		n.emptySince = 0
		return
	}
	if n.emptySince == 0 {
		n.emptySince = now
	}
	if now-n.emptySince >= d.opt.RenewEvery {
		d.drop(n)
		d.emit(Disconnect{n.name})
	}
}

// renewEvery is a quarter of the shortest lease on the node, and no longer than the options say.
func (d *Dispatcher) renewEvery(n *node) Instant {
	every := d.opt.RenewEvery
	for _, c := range n.claims {
		every = min(every, c.Lease/4)
	}
	return every
}

func (d *Dispatcher) renew(now Instant, n *node) {
	n.renewed = now
	for _, c := range n.claims {
		c.leaseSent = now
	}
	d.plan(n)
	if len(n.claims) == 0 {
		return
	}
	d.emit(Renew{n.name, n.heard, now - n.heardAt})
}

// Heard takes a node's word that it has let the leases go on, by its number on the present session.
func (d *Dispatcher) Heard(now Instant, nodeName string, word uint64) {
	if n := d.nodes[nodeName]; n != nil && n.connected && word > n.heard {
		n.heard, n.heardAt = word, now
	}
}

// NextTick is the instant at which Tick should be called next; ok is false when nothing waits for time.
func (d *Dispatcher) NextTick(now Instant) (at Instant, ok bool) {
	consider := func(t Instant) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if len(d.linger) > 0 {
		consider(d.linger[0].at)
	}
	for _, of := range d.gangs {
		consider(of.due(d.opt))
	}
	if m := d.next(&d.due); m != nil {
		consider(m.at)
	}
	if len(d.spare) > 0 { // their sessions need not end to the second
		consider(now + d.opt.RenewEvery)
	}
	return at, ok
}
