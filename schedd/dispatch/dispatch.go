package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Work is the queue as the dispatcher sees it.
type Work interface {
	// Ready returns how many tasks of the request could start now.
	Ready(RequestID) int
	// Assign records the next attempt of the request's best ready task for that claim, and returns it; false when none is ready.
	Assign(request RequestID, node, address string, claim uint64) (roost.AttemptID, bool)
	// Gang returns how many tasks of the request start together next, 0 if those of no gang could now; false for a request whose tasks start one by one.
	Gang(RequestID) (size int, ok bool)
	// Lead returns the request under which a gang is counted whose tasks are of several; false for a request whose gangs are of it alone.
	Lead(RequestID) (lead RequestID, ok bool)
	// AssignGang is Assign for all tasks of a gang, one for each seat; false if no gang of that size is ready.
	AssignGang(request RequestID, seats []Seat) ([]roost.AttemptID, bool)
	// Lose records that an attempt is gone without an exit status.
	Lose(attempt roost.AttemptID, reason string)
	// Live reports whether the attempt is the present one of its task, and has no end recorded.
	Live(roost.AttemptID) bool
	// Lease returns how long a claim for the request lives without renewal.
	Lease(RequestID) time.Duration
	// Within returns how long a task of the request may run, 0 for any time, and the reservation that it names.
	Within(RequestID) (walltime time.Duration, reservation string)
	// Movable reports whether an attempt that waits on a machine may be ended there to be made anew elsewhere.
	Movable(roost.AttemptID) bool
}

// Options are the dispatcher's times.
type Options struct {
	Linger     time.Duration // how long an idle claim waits for another task of its request
	Worklife   time.Duration // an older claim is given back when its task ends, so that the negotiator decides anew
	AskTimeout time.Duration // how long a startd may take to answer a claim
	KillGrace  time.Duration // how long a node may take to kill what it must
	RenewEvery time.Duration // the longest time between two renewals
	Patience   time.Duration // how long a task waits on a machine, and is to wait yet, before it is to be moved
	Restart    time.Duration // a node that has been away for longer is not just being restarted
}

// DefaultOptions are the times of a real pool.
func DefaultOptions() Options {
	return Options{
		Linger: 100 * time.Millisecond, Worklife: time.Minute, AskTimeout: 10 * time.Second,
		KillGrace: 10 * time.Second, RenewEvery: time.Minute, Restart: 2 * time.Second, Patience: 5 * time.Second,
	}
}

// node is what is known of one startd.
type node struct {
	name, address string
	connected     bool
	away          Instant           // not connected, and was before: since when; else 0
	claims        map[uint64]*Claim // by id; the asked ones have none yet
	asked         map[GrantID]*Claim
	renewed       Instant
	heard         uint64  // the number of its last word on this session; 0: the welcome
	heardAt       Instant // when that was heard
	emptySince    Instant // as the last tick has seen it; 0: it was not empty
	mark          mark
	touched       bool // the next tick looks at it
}

// Dispatcher holds all claims of a schedd.
type Dispatcher struct {
	work     Work
	opt      Options
	nodes    map[string]*node
	asked    map[GrantID]*Claim
	askedFor map[RequestID]int // claims asked for and not answered
	idle     map[RequestID][]*Claim
	waiting  map[RequestID][]*Claim  // those that wait for their resources
	busy     map[roost.TaskID]*Claim // Busy and Returning
	gangs    map[GrantID]*gang       // that are not there yet, or were given up a moment ago
	kept     map[string][]Kept       // by node
	effects  []Effect
	left     map[RequestID]bool // requests that have lost claims
	totals   map[RequestID]Total
	stirred  bool // a claim has become idle

	due, spare, linger agenda
	touched            []*node
	turns              uint64 // of claims that have become idle
}

// New returns a dispatcher that holds nothing.
func New(work Work, opt Options) *Dispatcher {
	return &Dispatcher{
		work: work, opt: opt, nodes: make(map[string]*node), asked: make(map[GrantID]*Claim), askedFor: make(map[RequestID]int),
		idle: make(map[RequestID][]*Claim), waiting: make(map[RequestID][]*Claim), busy: make(map[roost.TaskID]*Claim), gangs: make(map[GrantID]*gang),
		left: make(map[RequestID]bool), totals: make(map[RequestID]Total),
	}
}

// Effects drains what is to be done, in order.
func (d *Dispatcher) Effects() []Effect {
	out := d.effects
	d.effects = nil
	return out
}

// Left drains which requests have lost claims, in order: whoever counts their claims has to look again.
func (d *Dispatcher) Left() []RequestID {
	out := slices.Sorted(maps.Keys(d.left))
	clear(d.left)
	return out
}

func (d *Dispatcher) emit(e Effect) { d.effects = append(d.effects, e) }

// Granted takes a hint from the negotiator and asks the startd, unless the work is gone already.
func (d *Dispatcher) Granted(now Instant, g Grant) {
	if _, ok := d.asked[g.GrantID]; ok {
		return // said twice
	}
	of, useless := d.gangOf(now, g)
	if useless != "" {
		d.emit(Answer{Grant: g.GrantID, Request: g.Request, Reason: useless})
		return
	}
	surplus := d.work.Ready(g.Request) - len(d.idle[g.Request]) - d.askedFor[g.Request]
	if of == nil && surplus <= 0 && (g.MayWait || len(g.Victims) > 0 || surplus+d.Restless(now, g.Request) <= 0) {
		d.emit(Answer{Grant: g.GrantID, Request: g.Request, Reason: "nothing waits for it any more"})
		return
	}
	n := d.node(now, g.Node, g.Address)
	if n.away != 0 && now-n.away >= d.opt.Restart { // to wait for its answer would only keep the task from other nodes
		d.emit(Answer{Grant: g.GrantID, Request: g.Request, Reason: "the node does not answer"})
		if of != nil {
			d.scatter(of, "a node of its gang does not answer")
		}
		return
	}
	c := &Claim{
		Node: g.Node, Grant: g, Request: g.Request, Resources: g.Resources, State: Asked,
		Lease: d.work.Lease(g.Request), MayWait: surplus > 0 && of == nil, since: now, leaseSent: now,
		gang: of,
	}
	if of != nil {
		of.claims = append(of.claims, c)
	}
	d.asked[g.GrantID], n.asked[g.GrantID] = c, c
	d.askedFor[g.Request]++
	d.added(n, c)
	d.ask(now, n, c)
}

func (d *Dispatcher) ask(now Instant, n *node, c *Claim) {
	if n.connected && !c.told {
		c.told, c.leaseSent = true, now
		d.emit(AskClaim{c})
	}
}

// unask drops a claim from those that were asked for and not answered.
func (d *Dispatcher) unask(c *Claim) {
	if d.asked[c.Grant.GrantID] != c {
		return
	}
	n := d.nodes[c.Node]
	delete(d.asked, c.Grant.GrantID)
	delete(n.asked, c.Grant.GrantID)
	d.removed(n)
	if d.askedFor[c.Request]--; d.askedFor[c.Request] == 0 {
		delete(d.askedFor, c.Request)
	}
}

// node finds or makes the books of a node, and asks for a session with a new one.
func (d *Dispatcher) node(now Instant, name, address string) *node {
	n, ok := d.nodes[name]
	if !ok {
		n = &node{name: name, address: address, claims: make(map[uint64]*Claim), asked: make(map[GrantID]*Claim), renewed: now}
		d.nodes[name], n.mark.node = n, n
		d.touch(n)
		d.plan(n)
		d.emit(Connect{name, address})
	} else if n.address != address && address != "" {
		n.address = address
		d.emit(Connect{name, address}) // it moved: the session is made anew
	}
	return n
}

// ClaimAnswered takes a startd's answer.
func (d *Dispatcher) ClaimAnswered(now Instant, nodeName string, r Reply) {
	grant, id := r.Grant, r.Claim
	n := d.nodes[nodeName]
	c := d.asked[grant]
	if n == nil || c == nil || c.Node != nodeName {
		if id != 0 {
			d.emit(Release{nodeName, id}) // answered too late: nobody waits for it
		}
		return
	}
	d.unask(c)
	if id == 0 {
		d.emit(Answer{Grant: grant, Request: c.Request, AdSequence: r.AdSequence, Reason: r.Reason})
		d.part(c)
		return
	}
	c.ID, c.made, c.leaseSent, c.Placed, c.shown = id, now, now, r.Placed, r.AdSequence // the node counts its lease from when it was asked, which may have taken long
	d.hold(n, c)
	if r.Waiting {
		d.waits(c, true, now, r.Wait)
	}
	d.emit(Answer{Grant: grant, Request: c.Request, Claimed: true, Waiting: r.Waiting, AdSequence: r.AdSequence})
	if c.gang != nil {
		d.join(now, c)
		return
	}
	d.fill(now, c)
	if c.State == Idle && !c.Waiting {
		d.move(now, c)
	}
}

// fill puts the next task on a claim that is free, or leaves it idle, or gives it back when it is too old.
func (d *Dispatcher) fill(now Instant, c *Claim) {
	n := d.nodes[c.Node]
	if c.leaving || now-c.made >= d.opt.Worklife && d.opt.Worklife > 0 || d.keptFree(now, c) {
		d.release(c)
		return
	}
	attempt, ok := d.work.Assign(c.Request, c.Node, n.address, c.ID)
	if !ok {
		if c.State != Idle {
			d.enter(now, c, Idle)
			d.idles(c)
		}
		return
	}
	d.dropIdle(c)
	c.keepUntil = 0
	c.Attempt, c.Running, c.vacating, c.keep = attempt, false, false, false
	d.enter(now, c, Busy)
	d.busy[attempt.Task] = c
	d.emit(Activate{c.Node, c.ID, attempt})
}

func (d *Dispatcher) enter(now Instant, c *Claim, s State) {
	c.State, c.since = s, now
	d.stirred = d.stirred || s == Idle
}

// Stirred reports, once, whether a claim has become idle, so that NextTick may have come as close as Linger. All else that waits for time waits for
// seconds. In a steady stream of tasks no claim is idle, and nobody need look at all of them to find that out.
func (d *Dispatcher) Stirred() bool {
	was := d.stirred
	d.stirred = false
	return was
}

func (d *Dispatcher) dropIdle(c *Claim) {
	if c.State != Idle {
		return
	}
	c.mark.drop()
	list := slices.DeleteFunc(d.idle[c.Request], func(o *Claim) bool { return o == c })
	if len(list) == 0 {
		delete(d.idle, c.Request)
	} else {
		d.idle[c.Request] = list
	}
}

// release gives a claim back that runs nothing.
func (d *Dispatcher) release(c *Claim) {
	d.forget(c)
	d.emit(Release{c.Node, c.ID})
}

// forget drops a claim from the books.
func (d *Dispatcher) forget(c *Claim) {
	d.dropIdle(c)
	d.waits(c, false, 0, 0)
	n := d.nodes[c.Node]
	d.unhold(n, c.ID)
	d.left[c.Request] = true
	d.unask(c)
	if d.busy[c.Attempt.Task] == c {
		delete(d.busy, c.Attempt.Task)
	}
	d.part(c)
}

// RequestChanged puts newly ready tasks on the claims that wait for them, and gives claims of gangs back for which there are too few.
func (d *Dispatcher) RequestChanged(now Instant, r RequestID) {
	d.disband(r)
	for len(d.idle[r]) > 0 && d.work.Ready(r) > 0 {
		c := d.idle[r][0]
		d.fill(now, c)
		if c.State == Idle {
			return
		}
	}
}

// Held returns how many claims of the request exist or are asked for, and how many of those are free to take a task.
func (d *Dispatcher) Held(r RequestID) (free int) {
	lead, _ := d.work.Lead(r)
	if n := d.gathering(lead); n > 0 {
		return n
	}
	return len(d.idle[r]) + d.askedFor[r]
}

// Check panics when the books contradict each other.
func (d *Dispatcher) Check() {
	for r, list := range d.idle {
		for _, c := range list {
			if c.State != Idle || c.Request != r || d.nodes[c.Node].claims[c.ID] != c {
				panic(fmt.Sprintf("dispatch: %v stands among the idle of request %d", c, r))
			}
		}
	}
	for task, c := range d.busy {
		if (c.State != Busy && c.State != Returning) || c.Attempt.Task != task || d.nodes[c.Node].claims[c.ID] != c {
			panic(fmt.Sprintf("dispatch: %v stands for task %v", c, task))
		}
	}
	for r, list := range d.waiting {
		for _, c := range list {
			if !c.Waiting || c.Request != r || d.nodes[c.Node].claims[c.ID] != c {
				panic(fmt.Sprintf("dispatch: %v stands among those of request %d that wait", c, r))
			}
		}
	}
	asked := make(map[RequestID]int)
	for g, c := range d.asked {
		asked[c.Request]++
		if c.State != Asked || c.ID != 0 || d.nodes[c.Node].asked[g] != c {
			panic(fmt.Sprintf("dispatch: %v stands among the asked as %v", c, g))
		}
	}
	if !maps.Equal(asked, d.askedFor) {
		panic(fmt.Sprintf("dispatch: claims asked for by request: %v, and counted %v", asked, d.askedFor))
	}
	d.checkAgenda()
	d.checkTotals()
}

// Each calls f with every claim, the asked ones included, in no order.
func (d *Dispatcher) Each(f func(*Claim)) {
	for _, n := range d.nodes {
		for _, c := range n.claims {
			f(c)
		}
		for _, c := range n.asked {
			f(c)
		}
	}
}
