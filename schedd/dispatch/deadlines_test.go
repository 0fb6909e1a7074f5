package dispatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// leasedQueue is a queue of some requests, each with its own lease. The third request is
// for gangs of two.
type leasedQueue struct {
	ready    [4]int
	assigned int
	live     map[roost.AttemptID]RequestID
	silences []string // that were recorded
}

func (s *leasedQueue) ReadyTasks(r RequestID) int { return s.ready[r] }
func (s *leasedQueue) Lease(r RequestID) time.Duration {
	return [...]time.Duration{20 * time.Second, time.Minute, 8 * time.Minute, 40 * time.Minute}[r]
}
func (s *leasedQueue) IsMovable(roost.AttemptID) bool { return true }

func (s *leasedQueue) InsideAllocs(RequestID) (InsideAllocs, bool) { return InsideAllocs{}, false }

func (s *leasedQueue) AssignInside(RequestID, roost.TaskID, string, string, uint64) (roost.AttemptID, bool) {
	panic("nothing is inside")
}
func (s *leasedQueue) SilenceRules(RequestID) SilenceRules {
	return SilenceRules{NotedAfter: 15 * time.Second}
}
func (s *leasedQueue) RecordSilence(a roost.AttemptID, node string) {
	s.silences = append(s.silences, fmt.Sprintf("%v on %s", a, node))
}
func (s *leasedQueue) RecordReturn(a roost.AttemptID) {
	s.silences = append(s.silences, fmt.Sprintf("%v is back", a))
}
func (s *leasedQueue) ReusesClaim(roost.TaskID) bool { return false }
func (s *leasedQueue) AssignTask(roost.TaskID, string, string, uint64) (roost.AttemptID, bool) {
	return roost.AttemptID{}, false
}
func (s *leasedQueue) RuntimeBound(RequestID) (time.Duration, string) { return 0, "" }
func (s *leasedQueue) IsLive(a roost.AttemptID) bool                  { _, ok := s.live[a]; return ok }
func (s *leasedQueue) GangRequest(r RequestID) (RequestID, bool)      { return r, false }
func (s *leasedQueue) RecordLost(a roost.AttemptID, _ string) {
	s.ready[s.live[a]]++
	delete(s.live, a)
}
func (s *leasedQueue) NextGang(r RequestID) (size int, gangs bool) {
	if r == 2 {
		return min(s.ready[2]/2, 1) * 2, true
	}
	return 0, false
}

func (s *leasedQueue) Assign(r RequestID, _, _ string, _ uint64) (roost.AttemptID, bool) {
	if s.ready[r] == 0 {
		return roost.AttemptID{}, false
	}
	s.ready[r]--
	s.assigned++
	a := roost.AttemptID{Task: roost.JobID{Seq: uint64(r) + 1, Host: "h"}.Task(s.assigned), Attempt: 1}
	s.live[a] = r
	return a, true
}

func (s *leasedQueue) AssignGang(r RequestID, seats []GangClaim) (all []roost.AttemptID, ok bool) {
	if s.ready[r] < len(seats) {
		return nil, false
	}
	for range seats {
		a, _ := s.Assign(r, "", "", 0)
		all = append(all, a)
	}
	return all, true
}

// naiveTick is Tick without an agenda: it looks at everything.
func (d *Dispatcher) naiveTick(now roost.BootTime) {
	for _, r := range slices.Sorted(maps.Keys(d.idle)) {
		for _, c := range slices.Clone(d.idle[r]) {
			if now-c.stateSince >= d.options.IdleTimeout && now >= c.reservedUntil {
				d.release(c)
			}
		}
	}
	d.assembly().expireGangs(now)
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[name]
		d.expireLeases(now, n)
		if n.connected && now-n.renewedAt >= d.renewEvery(n) {
			d.renew(now, n)
		}
		d.disconnectIdle(now, n)
	}
}

// naiveNextTick is NextTick without an agenda.
func (d *Dispatcher) naiveNextTick(now roost.BootTime) (at roost.BootTime, ok bool) {
	consider := func(t roost.BootTime) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, list := range d.idle {
		for _, c := range list {
			consider(max(c.stateSince+d.options.IdleTimeout, c.reservedUntil))
		}
	}
	for _, of := range d.gangs {
		consider(of.deadline(d.options))
	}
	for _, n := range d.nodes {
		for _, c := range n.requested {
			since, most := c.stateSince, c.stateSince+5*d.options.RequestTimeout
			if c.requestSent {
				since = min(c.leaseSent, most)
				most = since + d.options.RequestTimeout
			}
			since = min(max(since, n.answeredAt), most)
			consider(since + d.options.RequestTimeout)
		}
		switch {
		case n.claimCount() == 0:
			consider(max(n.emptySince, now) + d.options.RenewEvery)
		case n.connected:
			consider(n.renewedAt + d.renewEvery(n))
		default:
			for _, c := range n.claims {
				consider(c.leaseEnd(d.options.KillGrace))
				if due, ok := c.silenceDue(n.awaySince); ok {
					consider(due)
				}
			}
		}
	}
	return at, ok
}

// dispatcherPair are two dispatchers that hear the same; the second looks at everything.
type dispatcherPair struct {
	*testing.T
	rng         *rand.Rand
	now         roost.BootTime
	dispatchers [2]*Dispatcher
	queues      [2]*leasedQueue
	grants      uint64
	claims      uint64
	counts      map[string]int // what has come of it
}

func newDispatcherPair(t *testing.T, seed uint64) *dispatcherPair {
	w := &dispatcherPair{T: t, rng: rand.New(rand.NewPCG(seed, 2)), now: time.Hour, counts: map[string]int{}}
	for i := range w.dispatchers {
		w.queues[i] = &leasedQueue{live: map[roost.AttemptID]RequestID{}}
		w.dispatchers[i] = New(w.queues[i], DefaultOptions())
		w.dispatchers[i].options.MoveAfter = 200 * time.Millisecond
	}
	return w
}

// forBoth tells both.
func (w *dispatcherPair) forBoth(f func(d *Dispatcher, s *leasedQueue)) {
	for i, d := range w.dispatchers {
		f(d, w.queues[i])
	}
}

// randomClaim draws one of the claims of the first, of a state; nil if there is none.
func (w *dispatcherPair) randomClaim(of ...ClaimState) *Claim {
	var all []*Claim
	w.dispatchers[0].EachClaim(func(c *Claim) {
		if slices.Contains(of, c.State) {
			all = append(all, c)
		}
	})
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *Claim) int { return int(a.Grant.ID) - int(b.Grant.ID) })
	return all[w.rng.IntN(len(all))]
}

func (w *dispatcherPair) grant() {
	w.grants++
	g := Grant{GrantID: roost.GrantID{Epoch: 1, ID: w.grants}, Request: RequestID(w.rng.IntN(4)),
		Node: fmt.Sprintf("n%d", w.rng.IntN(6)), Address: "x",
		Resources: roost.Resources{CPU: roost.MilliCPU(1000 * w.grants)}}
	g.MayWait = w.rng.IntN(3) == 0
	if g.Request != 2 {
		w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.Granted(w.now, g) })
		return
	}
	g.GangID, g.GangSize, g.MayWait = w.grants, 2, false
	other := g
	w.grants++
	other.ID, other.Node = w.grants, fmt.Sprintf("n%d", w.rng.IntN(6))
	w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.Granted(w.now, g); d.Granted(w.now, other) })
}

// connect brings a node up that has most of what it had.
func (w *dispatcherPair) connect(node string) {
	var present []ReportedClaim
	if n := w.dispatchers[0].nodes[node]; n != nil {
		for _, id := range slices.Sorted(maps.Keys(n.claims)) {
			c := n.claims[id]
			if p := (ReportedClaim{Claim: id, Grant: c.Grant.GrantID, Attempt: c.Attempt,
				Running: true}); w.rng.IntN(8) > 0 {
				present = append(present, p)
			}
		}
	}
	w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.Connected(w.now, node, present) })
}

func (w *dispatcherPair) answer(c *Claim) {
	r := ClaimReply{Grant: c.Grant.GrantID, AdSequence: 1, Reason: "no", WaitTime: time.Second}
	if w.rng.IntN(6) > 0 {
		w.claims++
		r.Claim, r.Waiting = w.claims, c.MayWait && w.rng.IntN(2) == 0
	}
	node := c.Node
	w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.ClaimAnswered(w.now, node, r) })
}

func (w *dispatcherPair) step() {
	node := fmt.Sprintf("n%d", w.rng.IntN(6))
	switch w.rng.IntN(12) {
	case 0, 1:
		w.grant()
	case 2, 3:
		if c := w.randomClaim(Requested); c != nil {
			w.answer(c)
		}
	case 4, 5:
		if c := w.randomClaim(Busy); c != nil {
			a, on, purge := c.Attempt, c.Node, w.rng.IntN(4) == 0
			w.forBoth(func(d *Dispatcher, s *leasedQueue) {
				d.Exited(w.now, on, a)
				if purge {
					d.Evicted(a)
				}
				delete(s.live, a)
				d.Finished(w.now, a)
			})
		}
	case 6:
		w.connect(node)
	case 7:
		if w.rng.IntN(3) == 0 {
			w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.Disconnected(w.now, node) })
		} else if c := w.randomClaim(Busy, Idle); c != nil && w.rng.IntN(3) == 0 {
			on, id := c.Node, c.ID
			w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.ClaimLost(on, id, "lost") })
		}
	case 8:
		if c := w.randomClaim(Busy, Idle); c != nil {
			on, id := c.Node, c.ID
			w.forBoth(func(d *Dispatcher, _ *leasedQueue) { d.Allocated(w.now, on, id, "") })
		}
	case 9:
		r := w.rng.IntN(4)
		n := w.rng.IntN(5)
		w.forBoth(func(d *Dispatcher, s *leasedQueue) { s.ready[r] = n; d.RequestChanged(w.now, RequestID(r)) })
	default:
		w.tick()
	}
}

// tick lets time go by: a moment, until something is due, or for long.
func (w *dispatcherPair) tick() {
	switch w.rng.IntN(8) {
	case 0, 1, 2, 3:
		w.now += time.Duration(w.rng.IntN(200)) * time.Millisecond
	case 4, 5:
		if at, ok := w.dispatchers[1].naiveNextTick(w.now); ok {
			w.now = max(w.now, at)
		}
	case 6:
		w.now += time.Duration(w.rng.IntN(20)) * time.Second
	case 7:
		w.now += time.Duration(w.rng.IntN(3)) * time.Minute
	}
	w.dispatchers[0].Tick(w.now)
	w.dispatchers[1].naiveTick(w.now)
}

// compare holds the two against each other.
func (w *dispatcherPair) compare() {
	w.dispatchers[0].Check()
	var texts [2]string
	for i, d := range w.dispatchers {
		for _, e := range d.Effects() {
			texts[i] += fmt.Sprintf("%T%v; ", e, e)
			if i == 0 {
				w.counts[fmt.Sprintf("%T", e)]++
			}
		}
		texts[i] += fmt.Sprint(d.ShrunkRequests(), w.queues[i].silences)
		w.counts["silence"] += len(w.queues[i].silences)
		w.queues[i].silences = nil
	}
	if texts[0] != texts[1] {
		w.Fatalf("at %v: got\n%s, want\n%s", w.now, texts[0], texts[1])
	}
	for name, n := range w.dispatchers[0].nodes {
		if o := w.dispatchers[1].nodes[name]; n.renewedAt != o.renewedAt || n.emptySince != o.emptySince {
			w.Fatalf("at %v: %s renewed at %v and empty since %v, want %v and %v", w.now, name, n.renewedAt,
				n.emptySince, o.renewedAt, o.emptySince)
		}
	}
	at, ok := w.dispatchers[0].NextTick(w.now)
	want, wanted := w.dispatchers[1].naiveNextTick(w.now)
	if at != want || ok != wanted {
		w.Fatalf("at %v: the next tick at %v, %v; want %v, %v", w.now, at, ok, want, wanted)
	}
}

// TestDeadlines: who looks only at what is due does the same at the same time as who
// looks at everything.
func TestDeadlines(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		w := newDispatcherPair(t, seed)
		w.counts = seen
		for range 1500 {
			w.step()
			w.compare()
		}
	}
	for _, e := range []Effect{ConnectNode{}, DisconnectNode{}, RequestClaim{}, ActivateClaim{}, VacateAttempt{},
		AcknowledgeExit{}, ReleaseClaim{}, RenewLeases{}, GrantResult{}} {
		if what := fmt.Sprintf("%T", e); seen[what] < 20 {
			t.Errorf("%d times %s: that is no trial of it", seen[what], what)
		}
	}
	if seen["silence"] < 20 {
		t.Errorf("%d silences: that is no trial of them", seen["silence"])
	}
}

// BenchmarkIdleTick is a tick and the question for the next, with nothing due and much
// held.
func BenchmarkIdleTick(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := &leasedQueue{live: map[roost.AttemptID]RequestID{}}
			s.ready[3] = 3 * nodes
			d := New(s, DefaultOptions())
			for i := range 3 * nodes {
				node := fmt.Sprintf("n%d", i%nodes)
				if i < nodes {
					d.Connected(time.Hour, node, nil)
				}
				g := roost.GrantID{Epoch: 1, ID: uint64(i + 1)}
				d.Granted(time.Hour, Grant{GrantID: g, Request: 3, Node: node, Address: "x"})
				d.ClaimAnswered(time.Hour, node, ClaimReply{Grant: g, Claim: g.ID})
			}
			for b.Loop() {
				d.Tick(time.Hour + time.Second)
				d.NextTick(time.Hour + time.Second)
			}
		})
	}
}
