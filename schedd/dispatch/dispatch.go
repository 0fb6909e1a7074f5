package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// JobQueue is the queue as the dispatcher sees it.
type JobQueue interface {
	// ReadyTasks returns how many tasks of the request could start now.
	ReadyTasks(RequestID) int
	// Assign records the next attempt of the request's best ready task for that claim,
	// and returns it; false when none is ready.
	Assign(request RequestID, node, address string, claim uint64) (roost.AttemptID, bool)
	// NextGang returns how many tasks of the request start together next, 0 if those of
	// no gang could now; false for a request whose tasks start one by one.
	NextGang(RequestID) (size int, ok bool)
	// GangRequest returns the request under which a gang is counted whose tasks are of
	// several; false for a request whose gangs are of it alone.
	GangRequest(RequestID) (lead RequestID, ok bool)
	// AssignGang is Assign for all tasks of a gang, one for each seat; false if no gang
	// of that size is ready.
	AssignGang(request RequestID, seats []GangClaim) ([]roost.AttemptID, bool)
	// RecordLost records that an attempt is gone without an exit status.
	RecordLost(attempt roost.AttemptID, reason string)
	// ReusesClaim reports whether the next attempt of a task that has ended is to run on
	// the claim of the last one, now or later.
	ReusesClaim(roost.TaskID) bool
	// AssignTask records the next attempt of that task for a claim, and returns it; false
	// when the task is not ready.
	AssignTask(task roost.TaskID, node, address string, claim uint64) (roost.AttemptID, bool)
	// IsLive reports whether the attempt is the present one of its task, and has no end
	// recorded.
	IsLive(roost.AttemptID) bool
	// Lease returns how long a claim for the request lives without renewal.
	Lease(RequestID) time.Duration
	// SilenceRules returns what follows when the node of a task of the request is silent.
	SilenceRules(RequestID) SilenceRules
	// RecordSilence records that the node of an attempt has been silent for the time that
	// the rules of its request say.
	RecordSilence(attempt roost.AttemptID, node string)
	// RecordReturn records that the node of an attempt answers, and has the attempt.
	RecordReturn(roost.AttemptID)
	// RuntimeBound returns how long a task of the request may run, 0 for any time, and
	// the reservation that it names.
	RuntimeBound(RequestID) (walltime time.Duration, reservation string)
	// IsMovable reports whether an attempt that waits on a machine may be ended there to
	// be made anew elsewhere.
	IsMovable(roost.AttemptID) bool
	// InsideAllocs returns inside which allocs the ready tasks of a request could run;
	// false for a request whose tasks run on machines.
	InsideAllocs(RequestID) (InsideAllocs, bool)
	// AssignInside is Assign for a claim inside an alloc.
	AssignInside(request RequestID, alloc roost.TaskID, node, address string, claim uint64) (roost.AttemptID, bool)
}

// SilenceRules say what follows when the node of a task is silent.
type SilenceRules struct {
	NotedAfter time.Duration // when the queue is told of it; 0: never
	// when the task is given up; 0: when its lease has ended
	LostAfter time.Duration
	Overlap   bool // that may be before its lease has ended: the job allows two attempts at once
}

// TimerOptions are the dispatcher's times.
type TimerOptions struct {
	IdleTimeout    time.Duration // how long an idle claim waits for another task of its request
	ClaimWorklife  time.Duration // an older claim is given back when its task ends, so that the negotiator decides anew
	RequestTimeout time.Duration // how long a startd may answer none of the claims that it was asked for
	MaxUnanswered  int           // claims that one startd is asked for at once; 0: any number
	KillGrace      time.Duration // how long a node may take to kill what it must
	RenewEvery     time.Duration // the longest time between two renewals
	MoveAfter      time.Duration // how long a task waits on a machine, and is to wait yet, before it is to be moved
	RestartWindow  time.Duration // a node that has been away for longer is not just being restarted
}

// DefaultOptions are the times of a real pool.
func DefaultOptions() TimerOptions {
	return TimerOptions{
		IdleTimeout: 100 * time.Millisecond, ClaimWorklife: time.Minute, RequestTimeout: 10 * time.Second,
		MaxUnanswered: 64,
		KillGrace:     10 * time.Second, RenewEvery: time.Minute, RestartWindow: 2 * time.Second,
		MoveAfter: 5 * time.Second,
	}
}

// nodeState is what is known of one startd.
type nodeState struct {
	name, address string
	connected     bool
	awaySince     roost.BootTime    // not connected, and was before: since when; else 0
	claims        map[uint64]*Claim // by id; the asked ones have none yet
	requested     map[roost.GrantID]*Claim
	sent          int            // of the requested ones: on this session
	unsent        []*Claim       // likewise: not sent yet, in order; some may be answered or given up
	answeredAt    roost.BootTime // when it last answered a request for a claim
	renewedAt     roost.BootTime
	lastMessage   uint64         // the number of its last word on this session; 0: the welcome
	lastMessageAt roost.BootTime // when that was heard
	emptySince    roost.BootTime // as the last tick has seen it; 0: it was not empty
	timer         deadlineTimer
	dirty         bool // the next tick looks at it
}

// Dispatcher holds all claims of a schedd.
type Dispatcher struct {
	jobQueue       JobQueue
	options        TimerOptions
	nodes          map[string]*nodeState
	requested      map[roost.GrantID]*Claim
	unanswered     map[RequestID]int // claims asked for and not answered
	idle           map[RequestID][]*Claim
	waiting        map[RequestID][]*Claim         // those that wait for their resources
	busy           map[roost.TaskID]*Claim        // Busy and Exited
	restarting     map[roost.TaskID]*Claim        // Restarting
	gangs          map[roost.GrantID]*pendingGang // that are not there yet, or were given up a moment ago
	unavailable    map[string][]UnavailableWindow // by node
	windowOrder    uint64                         // of the last change of unavailable
	nodeEnds       map[string]roost.BootTime      // of pilots, by node: when they are gone
	inside         insideClaims
	effects        []Effect
	shrunkRequests map[RequestID]bool // requests that have lost claims
	totals         map[RequestID]RequestTotal
	becameIdle     bool // a claim has become idle

	nodeDeadlines, unusedNodes, idleDeadlines deadlineHeap
	dirtyNodes                                []*nodeState
	idleCounter                               uint64 // of claims that have become idle
}

// New returns a dispatcher that holds nothing.
func New(work JobQueue, opt TimerOptions) *Dispatcher {
	return &Dispatcher{
		jobQueue: work, options: opt, nodes: make(map[string]*nodeState), requested: make(map[roost.GrantID]*Claim),
		unanswered: make(map[RequestID]int),
		idle:       make(map[RequestID][]*Claim), waiting: make(map[RequestID][]*Claim),
		busy:           make(map[roost.TaskID]*Claim),
		restarting:     make(map[roost.TaskID]*Claim),
		gangs:          make(map[roost.GrantID]*pendingGang),
		inside:         newInsideClaims(),
		shrunkRequests: make(map[RequestID]bool), totals: make(map[RequestID]RequestTotal),
	}
}

// Effects drains what is to be done, in order.
func (d *Dispatcher) Effects() []Effect {
	out := d.effects
	d.effects = nil
	return out
}

// ShrunkRequests drains which requests have lost claims, in order: whoever counts their
// claims has to look again.
func (d *Dispatcher) ShrunkRequests() []RequestID {
	out := slices.Sorted(maps.Keys(d.shrunkRequests))
	clear(d.shrunkRequests)
	return out
}

func (d *Dispatcher) emit(e Effect) { d.effects = append(d.effects, e) }

// Granted takes a hint from the negotiator and asks the startd, unless the work is gone
// already.
func (d *Dispatcher) Granted(now roost.BootTime, g Grant) {
	if _, ok := d.requested[g.GrantID]; ok {
		return // said twice
	}
	of, useless := d.assembly().findOrAddGang(now, g)
	if useless != "" {
		d.emit(GrantResult{Grant: g.GrantID, Request: g.Request, Reason: useless})
		return
	}
	surplus := d.jobQueue.ReadyTasks(g.Request) - len(d.idle[g.Request]) - d.unanswered[g.Request]
	if of == nil && surplus <= 0 && (g.MayWait || len(g.Victims) > 0 || surplus+d.Movable(now, g.Request) <= 0) {
		d.emit(GrantResult{Grant: g.GrantID, Request: g.Request, Reason: UnwantedClaim})
		return
	}
	n := d.findOrAddNode(now, g.Node, g.Address)
	// to wait for its answer would only keep the task from other nodes
	if n.awaySince != 0 && now-n.awaySince >= d.options.RestartWindow {
		d.emit(GrantResult{Grant: g.GrantID, Request: g.Request, Reason: SilentNode})
		if of != nil {
			d.assembly().abortGang(of, "a node of its gang does not answer")
		}
		return
	}
	c := &Claim{
		Node: g.Node, Grant: g, Request: g.Request, Resources: g.Resources, State: Requested,
		Lease: leaseAt(d, g.Node, g.Request), MayWait: surplus > 0 && of == nil, stateSince: now, leaseSent: now,
		gang: of, grantedAt: now, windowOrder: d.windowOrder,
	}
	c.silence = d.jobQueue.SilenceRules(g.Request)
	if of != nil {
		of.claims = append(of.claims, c)
	}
	d.requested[g.GrantID], n.requested[g.GrantID] = c, c
	d.unanswered[g.Request]++
	d.deadlines().noteAdded(n, c)
	d.requestClaim(now, n, c)
}

// requestClaim asks a node for a claim. The naive way sends every request at once. A
// startd that answers a thousand of them for longer than RequestTimeout would have the
// last ones given up and granted anew, and would then make claims that nobody wants. So
// at most MaxUnanswered are with the startd, and the others wait here.
func (d *Dispatcher) requestClaim(now roost.BootTime, n *nodeState, c *Claim) {
	if n.connected && !c.requestSent {
		n.unsent = append(n.unsent, c)
		sendRequests(d, now, n)
	}
}

// sendRequests sends as many of the waiting requests as the node may have.
func sendRequests(d *Dispatcher, now roost.BootTime, n *nodeState) {
	for len(n.unsent) > 0 && n.connected && (d.options.MaxUnanswered == 0 || n.sent < d.options.MaxUnanswered) {
		c := n.unsent[0]
		n.unsent = n.unsent[1:]
		if n.requested[c.Grant.GrantID] == c && !c.requestSent {
			c.requestSent, c.leaseSent = true, now
			n.sent++
			n.timer.inexact = true // its deadline is later now
			d.emit(RequestClaim{c})
		}
	}
}

// dropRequested drops a claim from those that were asked for and not answered.
func (d *Dispatcher) dropRequested(c *Claim) {
	if d.requested[c.Grant.GrantID] != c {
		return
	}
	n := d.nodes[c.Node]
	delete(d.requested, c.Grant.GrantID)
	delete(n.requested, c.Grant.GrantID)
	if c.requestSent {
		n.sent--
	}
	d.deadlines().noteRemoved(n)
	if d.unanswered[c.Request]--; d.unanswered[c.Request] == 0 {
		delete(d.unanswered, c.Request)
	}
}

// findOrAddNode finds or makes the books of a node, and asks for a session with a new
// one.
func (d *Dispatcher) findOrAddNode(now roost.BootTime, name, address string) *nodeState {
	n, ok := d.nodes[name]
	if !ok {
		n = &nodeState{name: name, address: address, claims: make(map[uint64]*Claim),
			requested: make(map[roost.GrantID]*Claim), renewedAt: now}
		d.nodes[name], n.timer.node = n, n
		d.deadlines().markDirty(n)
		d.deadlines().scheduleNode(n)
		d.emit(ConnectNode{name, address})
	} else if n.address != address && address != "" {
		n.address = address
		d.emit(ConnectNode{name, address}) // it moved: the session is made anew
	}
	return n
}

// ClaimAnswered takes a startd's answer.
func (d *Dispatcher) ClaimAnswered(now roost.BootTime, nodeName string, r ClaimReply) {
	grant, id := r.Grant, r.Claim
	n := d.nodes[nodeName]
	c := d.requested[grant]
	if n != nil && r.Reason != UnwantedClaim {
		n.answeredAt, n.timer.inexact = now, true
		defer sendRequests(d, now, n)
	}
	if n == nil || c == nil || c.Node != nodeName {
		if id != 0 {
			d.emit(ReleaseClaim{nodeName, id}) // answered too late: nobody waits for it
		}
		return
	}
	d.dropRequested(c)
	if id == 0 {
		if c.isInside() {
			allocsOf(d).refused(now, c.alloc, r.Reason)
			return
		}
		d.emit(GrantResult{Grant: grant, Request: c.Request, AdSequence: r.AdSequence, Reason: r.Reason})
		d.assembly().leaveGang(c)
		return
	}
	// the node counts its lease from when it was asked, which may have taken long
	c.ID, c.acceptedAt, c.leaseSent, c.Placement, c.firstAdSequence = id, now, now, r.Placement, r.AdSequence
	c.displaced = r.Displaced
	d.addToNode(n, c)
	if r.Waiting {
		d.setWaiting(c, true, now, r.WaitTime)
	}
	if !c.isInside() {
		d.emit(GrantResult{Grant: grant, Request: c.Request, Claimed: true, Waiting: r.Waiting,
			AdSequence: r.AdSequence})
	}
	if c.gang != nil {
		d.assembly().addToGang(now, c)
		return
	}
	d.assignNext(now, c)
	if c.State == Idle && !c.Waiting {
		d.moveWaiting(now, c)
	}
}

// assignNext puts the next task on a free claim, or leaves the claim idle. It releases a
// claim that is too old.
func (d *Dispatcher) assignNext(now roost.BootTime, c *Claim) {
	n := d.nodes[c.Node]
	if c.releaseAtEnd || c.resizing || now-c.acceptedAt >= d.options.ClaimWorklife && d.options.ClaimWorklife > 0 ||
		d.isUnavailable(now, c) || allocsOf(d).isTooMuch(c) {
		d.release(c)
		return
	}
	assign := d.jobQueue.Assign
	if c.isInside() {
		assign = allocsOf(d).assign(c)
	}
	attempt, ok := assign(c.Request, c.Node, n.address, c.ID)
	if !ok {
		if c.State != Idle {
			d.setState(now, c, Idle)
			d.deadlines().scheduleIdle(c)
		}
		return
	}
	activate(d, now, c, attempt)
}

// activate sends an attempt to a claim.
func activate(d *Dispatcher, now roost.BootTime, c *Claim, attempt roost.AttemptID) {
	d.dropIdle(c)
	c.reservedUntil = 0
	c.Attempt, c.Running, c.vacating, c.withCheckpoint, c.resizing = attempt, false, false, false, false
	d.setState(now, c, Busy)
	d.busy[attempt.Task] = c
	d.emit(ActivateClaim{c.Node, c.ID, attempt})
}

func (d *Dispatcher) setState(now roost.BootTime, c *Claim, s ClaimState) {
	c.State, c.stateSince = s, now
	d.becameIdle = d.becameIdle || s == Idle
}

// BecameIdle reports, once, whether a claim has become idle, so that NextTick may have
// come as close as IdleTimeout. All else that waits for time waits for seconds. In a
// steady stream of tasks no claim is idle, and nobody need look at all of them to find
// that out.
func (d *Dispatcher) BecameIdle() bool {
	was := d.becameIdle
	d.becameIdle = false
	return was
}

func (d *Dispatcher) dropIdle(c *Claim) {
	if c.State != Idle {
		return
	}
	c.timer.cancel()
	list := slices.DeleteFunc(d.idle[c.Request], func(o *Claim) bool { return o == c })
	if len(list) == 0 {
		delete(d.idle, c.Request)
	} else {
		d.idle[c.Request] = list
	}
}

// release gives a claim back that runs nothing.
func (d *Dispatcher) release(c *Claim) {
	d.removeClaim(c)
	d.emit(ReleaseClaim{c.Node, c.ID})
}

// removeClaim drops a claim from the books.
func (d *Dispatcher) removeClaim(c *Claim) {
	d.dropIdle(c)
	d.setWaiting(c, false, 0, 0)
	n := d.nodes[c.Node]
	d.removeFromNode(n, c.ID)
	d.shrunkRequests[c.Request] = true
	d.dropRequested(c)
	if d.busy[c.Attempt.Task] == c {
		delete(d.busy, c.Attempt.Task)
	}
	if d.restarting[c.Attempt.Task] == c {
		delete(d.restarting, c.Attempt.Task)
	}
	d.assembly().leaveGang(c)
	allocsOf(d).noteGone(c)
}

// RequestChanged puts newly ready tasks on the claims that wait for them. It releases
// claims of gangs that have too few ready tasks.
func (d *Dispatcher) RequestChanged(now roost.BootTime, r RequestID) {
	d.assembly().cancelGangs(r)
	if want, inside := d.jobQueue.InsideAllocs(r); inside {
		allocsOf(d).place(now, r, want)
		return
	}
	for len(d.idle[r]) > 0 && d.jobQueue.ReadyTasks(r) > 0 {
		c := d.idle[r][0]
		d.assignNext(now, c)
		if c.State == Idle {
			return
		}
	}
}

// ClaimCounts returns how many claims of the request are free to take a task or asked
// for. If gangs of the request are being assembled, it counts their claims only.
func (d *Dispatcher) ClaimCounts(r RequestID) (free int) {
	lead, _ := d.jobQueue.GangRequest(r)
	if n := d.assembly().gangClaims(lead); n > 0 {
		return n
	}
	return len(d.idle[r]) + d.unanswered[r]
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
		if (c.State != Busy && c.State != Exited) || c.Attempt.Task != task || d.nodes[c.Node].claims[c.ID] != c {
			panic(fmt.Sprintf("dispatch: %v stands for task %v", c, task))
		}
	}
	for task, c := range d.restarting {
		if c.State != Restarting || c.Attempt.Task != task || d.nodes[c.Node].claims[c.ID] != c || d.busy[task] != nil {
			panic(fmt.Sprintf("dispatch: %v waits for the restart of task %v", c, task))
		}
	}
	for r, list := range d.waiting {
		for _, c := range list {
			if !c.Waiting || c.Request != r || d.nodes[c.Node].claims[c.ID] != c {
				panic(fmt.Sprintf("dispatch: %v stands among those of request %d that wait", c, r))
			}
		}
	}
	for _, n := range d.nodes {
		sent := 0
		for _, c := range n.requested {
			if c.requestSent {
				sent++
			} else if n.connected && !slices.Contains(n.unsent, c) {
				panic(fmt.Sprintf("dispatch: %v is not asked for, and nothing will", c))
			}
		}
		if most := d.options.MaxUnanswered; sent != n.sent || most > 0 && n.connected && sent > most {
			panic(fmt.Sprintf("dispatch: %s is asked for %d claims, and %d are counted", n.name, sent, n.sent))
		}
	}
	asked := make(map[RequestID]int)
	for g, c := range d.requested {
		asked[c.Request]++
		if c.State != Requested || c.ID != 0 || d.nodes[c.Node].requested[g] != c {
			panic(fmt.Sprintf("dispatch: %v stands among the asked as %v", c, g))
		}
	}
	if !maps.Equal(asked, d.unanswered) {
		panic(fmt.Sprintf("dispatch: claims asked for by request: %v, and counted %v", asked, d.unanswered))
	}
	d.deadlines().checkDeadlines()
	checkTotals(d)
	allocsOf(d).check()
}

// EachClaim calls f with every claim, the asked ones included, in no order.
func (d *Dispatcher) EachClaim(f func(*Claim)) {
	for _, n := range d.nodes {
		for _, c := range n.claims {
			f(c)
		}
		for _, c := range n.requested {
			f(c)
		}
	}
}
