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

// shelf is a queue of some requests, each with a lease of its own; the third is of gangs of two.
type shelf struct {
	ready [4]int
	given int
	live  map[roost.AttemptID]RequestID
}

func (s *shelf) Ready(r RequestID) int { return s.ready[r] }
func (s *shelf) Lease(r RequestID) time.Duration {
	return [...]time.Duration{20 * time.Second, time.Minute, 8 * time.Minute, 40 * time.Minute}[r]
}
func (s *shelf) Movable(roost.AttemptID) bool             { return true }
func (s *shelf) Within(RequestID) (time.Duration, string) { return 0, "" }
func (s *shelf) Live(a roost.AttemptID) bool              { _, ok := s.live[a]; return ok }
func (s *shelf) Lead(r RequestID) (RequestID, bool)       { return r, false }
func (s *shelf) Lose(a roost.AttemptID, _ string)         { s.ready[s.live[a]]++; delete(s.live, a) }
func (s *shelf) Gang(r RequestID) (size int, gangs bool) {
	if r == 2 {
		return min(s.ready[2]/2, 1) * 2, true
	}
	return 0, false
}

func (s *shelf) Assign(r RequestID, _, _ string, _ uint64) (roost.AttemptID, bool) {
	if s.ready[r] == 0 {
		return roost.AttemptID{}, false
	}
	s.ready[r]--
	s.given++
	a := roost.AttemptID{Task: roost.JobID{Seq: uint64(r) + 1, Host: "h"}.Task(s.given), Attempt: 1}
	s.live[a] = r
	return a, true
}

func (s *shelf) AssignGang(r RequestID, seats []Seat) (all []roost.AttemptID, ok bool) {
	if s.ready[r] < len(seats) {
		return nil, false
	}
	for range seats {
		a, _ := s.Assign(r, "", "", 0)
		all = append(all, a)
	}
	return all, true
}

// walkTick is Tick without an agenda: it looks at everything.
func (d *Dispatcher) walkTick(now Instant) {
	for _, r := range slices.Sorted(maps.Keys(d.idle)) {
		for _, c := range slices.Clone(d.idle[r]) {
			if now-c.since >= d.opt.Linger && now >= c.keepUntil {
				d.release(c)
			}
		}
	}
	d.tickGangs(now)
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[name]
		d.lapse(now, n)
		if n.connected && now-n.renewed >= d.renewEvery(n) {
			d.renew(now, n)
		}
		d.leave(now, n)
	}
}

// walkNext is NextTick without an agenda.
func (d *Dispatcher) walkNext(now Instant) (at Instant, ok bool) {
	consider := func(t Instant) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, list := range d.idle {
		for _, c := range list {
			consider(max(c.since+d.opt.Linger, c.keepUntil))
		}
	}
	for _, of := range d.gangs {
		consider(of.due(d.opt))
	}
	for _, n := range d.nodes {
		for _, c := range n.asked {
			consider(c.since + d.opt.AskTimeout)
		}
		switch {
		case n.held() == 0:
			consider(max(n.emptySince, now) + d.opt.RenewEvery)
		case n.connected:
			consider(n.renewed + d.renewEvery(n))
		default:
			for _, c := range n.claims {
				consider(c.lapses(d.opt.KillGrace))
			}
		}
	}
	return at, ok
}

// twins are two dispatchers that hear the same; the second looks at everything.
type twins struct {
	*testing.T
	rng    *rand.Rand
	now    Instant
	both   [2]*Dispatcher
	work   [2]*shelf
	grants uint64
	claims uint64
	seen   map[string]int // what has come of it
}

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{T: t, rng: rand.New(rand.NewPCG(seed, 2)), now: time.Hour, seen: map[string]int{}}
	for i := range w.both {
		w.work[i] = &shelf{live: map[roost.AttemptID]RequestID{}}
		w.both[i] = New(w.work[i], DefaultOptions())
		w.both[i].opt.Patience = 200 * time.Millisecond
	}
	return w
}

// each tells both.
func (w *twins) each(f func(d *Dispatcher, s *shelf)) {
	for i, d := range w.both {
		f(d, w.work[i])
	}
}

// some draws one of the claims of the first, of a state; nil if there is none.
func (w *twins) some(of ...State) *Claim {
	var all []*Claim
	w.both[0].Each(func(c *Claim) {
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

func (w *twins) grant() {
	w.grants++
	g := Grant{GrantID: GrantID{1, w.grants}, Request: RequestID(w.rng.IntN(4)), Node: fmt.Sprintf("n%d", w.rng.IntN(6)), Address: "x",
		Resources: roost.Resources{CPU: roost.MilliCPU(1000 * w.grants)}}
	g.MayWait = w.rng.IntN(3) == 0
	if g.Request != 2 {
		w.each(func(d *Dispatcher, _ *shelf) { d.Granted(w.now, g) })
		return
	}
	g.Gang, g.GangSize, g.MayWait = w.grants, 2, false
	other := g
	w.grants++
	other.ID, other.Node = w.grants, fmt.Sprintf("n%d", w.rng.IntN(6))
	w.each(func(d *Dispatcher, _ *shelf) { d.Granted(w.now, g); d.Granted(w.now, other) })
}

// connect brings a node up that has most of what it had.
func (w *twins) connect(node string) {
	var present []Present
	if n := w.both[0].nodes[node]; n != nil {
		for _, id := range slices.Sorted(maps.Keys(n.claims)) {
			c := n.claims[id]
			if p := (Present{Claim: id, Grant: c.Grant.GrantID, Attempt: c.Attempt, Running: true}); w.rng.IntN(8) > 0 {
				present = append(present, p)
			}
		}
	}
	w.each(func(d *Dispatcher, _ *shelf) { d.Connected(w.now, node, present) })
}

func (w *twins) answer(c *Claim) {
	r := Reply{Grant: c.Grant.GrantID, AdSequence: 1, Reason: "no", Wait: time.Second}
	if w.rng.IntN(6) > 0 {
		w.claims++
		r.Claim, r.Waiting = w.claims, c.MayWait && w.rng.IntN(2) == 0
	}
	node := c.Node
	w.each(func(d *Dispatcher, _ *shelf) { d.ClaimAnswered(w.now, node, r) })
}

func (w *twins) step() {
	node := fmt.Sprintf("n%d", w.rng.IntN(6))
	switch w.rng.IntN(12) {
	case 0, 1:
		w.grant()
	case 2, 3:
		if c := w.some(Asked); c != nil {
			w.answer(c)
		}
	case 4, 5:
		if c := w.some(Busy); c != nil {
			a, on, purge := c.Attempt, c.Node, w.rng.IntN(4) == 0
			w.each(func(d *Dispatcher, s *shelf) {
				d.Exited(w.now, on, a)
				if purge {
					d.Expelled(a)
				}
				delete(s.live, a)
				d.Finished(w.now, a)
			})
		}
	case 6:
		w.connect(node)
	case 7:
		if w.rng.IntN(3) == 0 {
			w.each(func(d *Dispatcher, _ *shelf) { d.Disconnected(w.now, node) })
		} else if c := w.some(Busy, Idle); c != nil && w.rng.IntN(3) == 0 {
			on, id := c.Node, c.ID
			w.each(func(d *Dispatcher, _ *shelf) { d.ClaimLost(on, id, "lost") })
		}
	case 8:
		if c := w.some(Busy, Idle); c != nil {
			on, id := c.Node, c.ID
			w.each(func(d *Dispatcher, _ *shelf) { d.Ready(w.now, on, id, "") })
		}
	case 9:
		r := w.rng.IntN(4)
		n := w.rng.IntN(5)
		w.each(func(d *Dispatcher, s *shelf) { s.ready[r] = n; d.RequestChanged(w.now, RequestID(r)) })
	default:
		w.tick()
	}
}

// tick lets time go by: a moment, until something is due, or for long.
func (w *twins) tick() {
	switch w.rng.IntN(8) {
	case 0, 1, 2, 3:
		w.now += time.Duration(w.rng.IntN(200)) * time.Millisecond
	case 4, 5:
		if at, ok := w.both[1].walkNext(w.now); ok {
			w.now = max(w.now, at)
		}
	case 6:
		w.now += time.Duration(w.rng.IntN(20)) * time.Second
	case 7:
		w.now += time.Duration(w.rng.IntN(3)) * time.Minute
	}
	w.both[0].Tick(w.now)
	w.both[1].walkTick(w.now)
}

// compare holds the two against each other.
func (w *twins) compare() {
	w.both[0].Check()
	var said [2]string
	for i, d := range w.both {
		for _, e := range d.Effects() {
			said[i] += fmt.Sprintf("%T%v; ", e, e)
			if i == 0 {
				w.seen[fmt.Sprintf("%T", e)]++
			}
		}
		said[i] += fmt.Sprint(d.Left())
	}
	if said[0] != said[1] {
		w.Fatalf("at %v: got\n%s, want\n%s", w.now, said[0], said[1])
	}
	for name, n := range w.both[0].nodes {
		if o := w.both[1].nodes[name]; n.renewed != o.renewed || n.emptySince != o.emptySince {
			w.Fatalf("at %v: %s renewed at %v and empty since %v, want %v and %v", w.now, name, n.renewed, n.emptySince, o.renewed, o.emptySince)
		}
	}
	at, ok := w.both[0].NextTick(w.now)
	want, wanted := w.both[1].walkNext(w.now)
	if at != want || ok != wanted {
		w.Fatalf("at %v: the next tick at %v, %v; want %v, %v", w.now, at, ok, want, wanted)
	}
}

// TestAgenda: who looks only at what is due does the same at the same time as who looks at everything.
func TestAgenda(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		w := newTwins(t, seed)
		w.seen = seen
		for range 1500 {
			w.step()
			w.compare()
		}
	}
	for _, e := range []Effect{Connect{}, Disconnect{}, AskClaim{}, Activate{}, Vacate{}, Acknowledge{}, Release{}, Renew{}, Answer{}} {
		if what := fmt.Sprintf("%T", e); seen[what] < 20 {
			t.Errorf("%d times %s: that is no trial of it", seen[what], what)
		}
	}
}

// BenchmarkIdleTick is a tick and the question for the next, with nothing due and much held.
func BenchmarkIdleTick(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := &shelf{live: map[roost.AttemptID]RequestID{}}
			s.ready[3] = 3 * nodes
			d := New(s, DefaultOptions())
			for i := range 3 * nodes {
				node := fmt.Sprintf("n%d", i%nodes)
				if i < nodes {
					d.Connected(time.Hour, node, nil)
				}
				g := GrantID{1, uint64(i + 1)}
				d.Granted(time.Hour, Grant{GrantID: g, Request: 3, Node: node, Address: "x"})
				d.ClaimAnswered(time.Hour, node, Reply{Grant: g, Claim: g.ID})
			}
			for b.Loop() {
				d.Tick(time.Hour + time.Second)
				d.NextTick(time.Hour + time.Second)
			}
		})
	}
}
