package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// bench is a queue of one request, and the naive truth about its tasks.
type bench struct {
	t       *testing.T
	ready   []int
	attempt map[int]roost.Attempt
	live    map[roost.AttemptID]bool
	lost    int
	done    map[int]bool
	gang    int // tasks that start together; 0: each for itself

	walltime    time.Duration
	reservation string
}

func newBench(t *testing.T, tasks int) *bench {
	b := &bench{t: t, attempt: map[int]roost.Attempt{}, live: map[roost.AttemptID]bool{}, done: map[int]bool{}}
	for i := range tasks {
		b.ready = append(b.ready, i)
	}
	return b
}

func (b *bench) Ready(RequestID) int           { return len(b.ready) }
func (b *bench) Lease(RequestID) time.Duration { return time.Minute }
func (b *bench) Movable(roost.AttemptID) bool  { return true }
func (b *bench) Within(RequestID) (time.Duration, string) {
	return b.walltime, b.reservation
}
func (b *bench) Live(a roost.AttemptID) bool { return b.live[a] }

func (b *bench) Gang(RequestID) (int, bool) {
	if len(b.ready) < b.gang {
		return 0, true
	}
	return b.gang, b.gang > 0
}

func (b *bench) Lead(r RequestID) (RequestID, bool) { return r, false }

func (b *bench) AssignGang(r RequestID, seats []Seat) (attempts []roost.AttemptID, ok bool) {
	if b.gang != len(seats) || len(b.ready) < b.gang {
		return nil, false
	}
	for _, s := range seats {
		a, _ := b.Assign(r, s.Node, s.Address, s.Claim)
		attempts = append(attempts, a)
	}
	return attempts, true
}

func (b *bench) Assign(_ RequestID, node, _ string, claim uint64) (roost.AttemptID, bool) {
	if len(b.ready) == 0 {
		return roost.AttemptID{}, false
	}
	i := b.ready[0]
	b.ready = b.ready[1:]
	b.attempt[i]++
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(i), Attempt: b.attempt[i]}
	for other := range b.live {
		if other.Task == a.Task {
			b.t.Fatalf("%v assigned while %v is live", a, other)
		}
	}
	b.live[a] = true
	return a, true
}

func (b *bench) Lose(a roost.AttemptID, _ string) {
	if !b.live[a] {
		b.t.Fatalf("%v lost, and it is not live", a)
	}
	delete(b.live, a)
	b.lost++
	b.ready = append(b.ready, a.Task.Index)
}

func (b *bench) end(a roost.AttemptID) {
	if !b.live[a] || b.done[a.Task.Index] {
		b.t.Fatalf("%v recorded twice or out of its life", a)
	}
	delete(b.live, a)
	b.done[a.Task.Index] = true
}

// machine is a startd as DESIGN §5 describes it: it drops what comes from a superseded session, and its word on what it has is the truth.
type machine struct {
	name   string
	up     bool
	next   uint64
	claims map[uint64]*held
	used   map[GrantID]bool
	inbox  []Effect // on the present session, not yet received
}

type held struct {
	grant   GrantID
	attempt roost.AttemptID
	exited  bool
	waiting bool // it has no resources
}

type world struct {
	*testing.T
	rng      *rand.Rand
	now      Instant
	b        *bench
	d        *Dispatcher
	machines map[string]*machine
	names    []string
	grants   uint64
	overlap  map[roost.TaskID]int
	taken    map[roost.AttemptID]bool // back, before they had started
	moved    int
	slept    int
}

func newWorld(t *testing.T, seed uint64, tasks, machines int) *world {
	w := &world{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, b: newBench(t, tasks),
		machines: map[string]*machine{}, overlap: map[roost.TaskID]int{}, taken: map[roost.AttemptID]bool{},
	}
	opt := DefaultOptions()
	opt.Patience = 200 * time.Millisecond
	w.d = New(w.b, opt)
	for i := range machines {
		name := fmt.Sprintf("n%d", i)
		w.names = append(w.names, name)
		w.machines[name] = &machine{name: name, claims: map[uint64]*held{}, used: map[GrantID]bool{}, next: 1}
	}
	return w
}

// deliver moves effects onto the sessions; on a node that is away they are lost, as they are on a broken connection.
func (w *world) deliver() {
	for _, e := range w.d.Effects() {
		var node string
		switch e := e.(type) {
		case AskClaim:
			node = e.Claim.Node
		case Activate:
			node = e.Node
		case Vacate:
			node = e.Node
		case Acknowledge:
			node = e.Node
		case Release:
			node = e.Node
		default:
			continue
		}
		if m := w.machines[node]; m.up {
			m.inbox = append(m.inbox, e)
		}
	}
}

func (w *world) receive(m *machine) {
	if len(m.inbox) == 0 {
		return
	}
	e := m.inbox[0]
	m.inbox = m.inbox[1:]
	switch e := e.(type) {
	case AskClaim:
		if m.used[e.Claim.Grant.GrantID] || w.rng.IntN(8) == 0 {
			w.d.ClaimAnswered(w.now, m.name, Reply{Grant: e.Claim.Grant.GrantID, Claim: 0, AdSequence: 1, Reason: "refused"})
			return
		}
		m.used[e.Claim.Grant.GrantID] = true
		m.next++
		h := &held{grant: e.Claim.Grant.GrantID, waiting: e.Claim.MayWait && w.rng.IntN(2) == 0}
		m.claims[m.next] = h
		if w.rng.IntN(4) > 0 { // else the answer is lost: the session breaks
			w.d.ClaimAnswered(w.now, m.name, Reply{Grant: e.Claim.Grant.GrantID, Claim: m.next, AdSequence: 1, Waiting: h.waiting, Wait: time.Second})
		} else {
			w.down(m)
		}
	case Activate:
		w.start(m, m.claims[e.Claim], e.Attempt)
	case Vacate:
		for _, h := range m.claims {
			if h.attempt == e.Attempt && !h.exited {
				w.taken[h.attempt] = h.waiting
				w.exit(m, h)
			}
		}
	case Acknowledge:
		for _, h := range m.claims {
			if h.attempt == e.Attempt && h.exited {
				h.attempt, h.exited = roost.AttemptID{}, false
			}
		}
	case Release:
		if h := m.claims[e.Claim]; h != nil {
			if h.attempt != (roost.AttemptID{}) && !h.exited && !h.waiting {
				w.overlap[h.attempt.Task]--
			}
			delete(m.claims, e.Claim)
		}
	}
}

func (w *world) start(m *machine, h *held, a roost.AttemptID) {
	if h == nil {
		return // released meanwhile
	}
	if h.attempt != (roost.AttemptID{}) {
		w.Fatalf("%s: %v on a claim that holds %v", m.name, a, h.attempt)
	}
	h.attempt = a
	if h.waiting {
		return
	}
	w.run(m, a)
}

func (w *world) run(m *machine, a roost.AttemptID) {
	if w.overlap[a.Task]++; w.overlap[a.Task] > 1 {
		w.Fatalf("two attempts of %v are alive", a.Task)
	}
	w.d.Started(m.name, a)
}

func (w *world) exit(m *machine, h *held) {
	h.exited = true
	if !h.waiting {
		w.overlap[h.attempt.Task]--
	}
	if m.up {
		w.exited(m, h.attempt)
	}
}

func (w *world) exited(m *machine, a roost.AttemptID) {
	if w.d.Exited(w.now, m.name, a) {
		if w.taken[a] {
			w.moved++
			delete(w.b.live, a)
			w.b.ready = append(w.b.ready, a.Task.Index)
		} else {
			w.b.end(a)
		}
		w.d.Finished(w.now, a)
	}
}

func (w *world) down(m *machine) {
	if m.up {
		m.up, m.inbox = false, nil
		w.d.Disconnected(w.now, m.name)
	}
}

func (w *world) raise(m *machine) {
	if m.up || w.d.nodes[m.name] == nil {
		return
	}
	m.up = true
	var present []Present
	for id := uint64(0); id <= m.next; id++ {
		if h := m.claims[id]; h != nil {
			present = append(present, Present{Claim: id, Grant: h.grant, Attempt: h.attempt, Running: !h.exited && !h.waiting, Exited: h.exited, Waiting: h.waiting})
		}
	}
	w.d.Connected(w.now, m.name, present)
	for _, p := range present {
		if p.Exited {
			w.exited(m, p.Attempt)
		}
	}
}

func (w *world) step(faults bool) {
	m := w.machines[w.names[w.rng.IntN(len(w.names))]]
	switch w.rng.IntN(8) {
	case 0:
		w.grants++
		w.d.Granted(w.now, Grant{GrantID: GrantID{1, w.grants}, Node: m.name, Address: "unix:/" + m.name})
	case 1, 2:
		w.receive(m)
	case 3:
		for id := uint64(0); id <= m.next; id++ {
			if h := m.claims[id]; h != nil && h.attempt != (roost.AttemptID{}) && !h.exited && !h.waiting {
				w.exit(m, h)
				break
			}
		}
	case 7:
		w.turn(m)
	case 4:
		if faults && w.rng.IntN(6) == 0 {
			w.down(m)
		} else {
			w.raise(m)
		}
	case 5:
		w.now += time.Duration(w.rng.IntN(50)) * time.Millisecond
		w.d.Tick(w.now)
	case 6:
		if faults && w.rng.IntN(20) == 0 && !m.up { // a reboot: everything on it is gone
			for id, h := range m.claims {
				if h.attempt != (roost.AttemptID{}) && !h.exited && !h.waiting {
					w.overlap[h.attempt.Task]--
				}
				delete(m.claims, id)
			}
		} else if faults && w.rng.IntN(60) == 0 {
			w.sleep()
		}
	}
	w.d.RequestChanged(w.now, 0)
	w.deliver()
	w.d.Check()
}

// sleep suspends the schedd's host for an hour: all leases run out meanwhile, and what runs elsewhere is killed there. When it wakes its connections are
// broken, and whatever it hears or looks at first is about what was an hour ago.
func (w *world) sleep() {
	w.slept++
	w.now += time.Hour
	for _, name := range w.names {
		m := w.machines[name]
		for id := uint64(0); id <= m.next; id++ {
			switch h := m.claims[id]; {
			case h == nil || h.exited:
			case h.attempt == (roost.AttemptID{}):
				delete(m.claims, id)
			default:
				w.taken[h.attempt] = true
				if h.exited = true; !h.waiting {
					w.overlap[h.attempt.Task]--
				}
			}
		}
		w.down(m)
		if w.rng.IntN(2) == 0 {
			w.raise(m)
		}
	}
}

// turn gives a claim that waits its resources.
func (w *world) turn(m *machine) {
	for id := uint64(0); id <= m.next && w.rng.IntN(4) == 0; id++ {
		if h := m.claims[id]; h != nil && h.waiting && !h.exited {
			h.waiting = false
			if m.up {
				w.d.Ready(w.now, m.name, id, "")
			}
			if h.attempt != (roost.AttemptID{}) {
				w.run(m, h.attempt)
			}
			return
		}
	}
}

// Whatever breaks, no task runs twice at the same time, none is recorded twice, and when the faults stop everything finishes.
func TestFaults(t *testing.T) {
	moved, slept := 0, 0
	defer func() {
		if moved == 0 || slept == 0 {
			t.Errorf("%d tasks were taken back from where they waited, and the schedd slept %d times", moved, slept)
		}
	}()
	for seed := range uint64(300) {
		w := newWorld(t, seed, 20, 3)
		for range 600 {
			w.step(true)
		}
		for range 20_000 {
			if len(w.b.done) == 20 {
				break
			}
			w.step(false)
		}
		if len(w.b.done) != 20 {
			t.Fatalf("seed %d: %d of 20 tasks finished", seed, len(w.b.done))
		}
		moved, slept = moved+w.moved, slept+w.slept
	}
}

// A node that never comes back keeps its attempts until the lease that was last sent has run out, with drift and the time to kill.
func TestLeaseRunsOut(t *testing.T) {
	w := newWorld(t, 1, 1, 1)
	m := w.machines["n0"]
	w.d.Granted(w.now, Grant{GrantID: GrantID{1, 1}, Node: "n0", Address: "unix:/n0"})
	w.raise(m)
	w.d.ClaimAnswered(w.now, "n0", Reply{Grant: GrantID{1, 1}, Claim: 7, AdSequence: 1})
	sent := w.now
	w.down(m)
	if len(w.b.live) != 1 {
		t.Fatalf("%d attempts live, want 1", len(w.b.live))
	}
	lapses := sent + time.Minute + time.Minute/100 + 10*time.Second
	task := roost.JobID{Seq: 1, Host: "h"}.Task(0)
	if got, ok := w.d.SilentOn(task); !ok || got != (Silence{"n0", w.now, lapses}) {
		t.Errorf("silent: got %+v, %v, want since %v, until %v", got, ok, w.now, lapses)
	}
	w.d.Tick(sent + time.Minute + 10*time.Second)
	if len(w.b.live) != 1 {
		t.Fatal("given up before drift was allowed for")
	}
	w.d.Tick(lapses)
	if _, ok := w.d.SilentOn(task); ok {
		t.Error("a task that was given up is said to be on a silent node")
	}
	if len(w.b.live) != 0 || w.b.lost != 1 {
		t.Fatalf("%d live and %d lost after the lease, want 0 and 1", len(w.b.live), w.b.lost)
	}
}

// An idle claim is given back after it lingered, and an old one as soon as its task has ended.
func TestGivenBack(t *testing.T) {
	w := newWorld(t, 3, 1, 1)
	w.machines["n0"].up = true
	w.d.Granted(w.now, Grant{GrantID: GrantID{1, 1}, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", Reply{Grant: GrantID{1, 1}, Claim: 7, AdSequence: 1})
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
	w.exited(w.machines["n0"], a)
	if w.d.Held(0) != 1 || !w.d.Stirred() || w.d.Stirred() {
		t.Fatal("the claim does not wait for another task, or does not say so once")
	}
	w.d.Effects()
	w.d.Tick(w.now + 99*time.Millisecond)
	if e := w.d.Effects(); len(e) != 0 {
		t.Fatalf("given back too soon: %v", e)
	}
	w.d.Tick(w.now + 100*time.Millisecond)
	if e := w.d.Effects(); len(e) != 1 || e[0] != (Release{"n0", 7}) {
		t.Fatalf("got %v, want a release of claim 7", e)
	}
	if left := w.d.Left(); len(left) != 1 || left[0] != 0 || len(w.d.Left()) != 0 {
		t.Errorf("requests %v have lost claims, want the one, once", left)
	}
}

// A node that has been away for a while is not asked: the task is for another. One that is being restarted is.
func TestAwayIsNotAsked(t *testing.T) {
	w := newWorld(t, 1, 3, 1)
	m := w.machines["n0"]
	w.d.Granted(w.now, Grant{GrantID: GrantID{1, 1}, Node: "n0", Address: "unix:/n0"})
	w.raise(m)
	w.d.ClaimAnswered(w.now, "n0", Reply{Grant: GrantID{1, 1}, Claim: 7, AdSequence: 1})
	w.down(m)
	w.d.Effects()
	w.now += time.Second
	w.d.Granted(w.now, Grant{GrantID: GrantID{1, 2}, Node: "n0", Address: "unix:/n0"})
	if e := w.d.Effects(); len(e) != 0 {
		t.Fatalf("away for a second: got %v, want patience", e)
	}
	w.now += time.Second
	w.d.Granted(w.now, Grant{GrantID: GrantID{1, 3}, Node: "n0", Address: "unix:/n0"})
	want := Answer{Grant: GrantID{1, 3}, Reason: "the node does not answer"}
	if e := w.d.Effects(); len(e) != 1 || e[0] != want {
		t.Fatalf("away for two: got %v, want a refusal", e)
	}
}

// A machine that has a task go takes its claim back, too, and gets no other task on it; where the schedd itself has asked for that the claim goes on.
func TestExpelled(t *testing.T) {
	for _, asked := range []bool{false, true} {
		w := newWorld(t, 4, 2, 1)
		w.machines["n0"].up = true
		w.d.Granted(w.now, Grant{GrantID: GrantID{1, 1}, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		w.d.ClaimAnswered(w.now, "n0", Reply{Grant: GrantID{1, 1}, Claim: 7, AdSequence: 1})
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		if asked {
			w.d.Vacate(a, VacateOrder{})
		}
		w.d.Exited(w.now, "n0", a)
		w.d.Expelled(a)
		w.b.end(a)
		w.d.Effects()
		w.d.Finished(w.now, a)
		e, next := w.d.Effects(), roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(1), Attempt: 1}
		if want := Effect(Release{"n0", 7}); !asked && (len(e) != 2 || e[1] != want) {
			t.Errorf("got %v, want a release of claim 7", e)
		}
		if want := Effect(Activate{"n0", 7, next}); asked && (len(e) != 2 || e[1] != want) {
			t.Errorf("the schedd asked for it: got %v, want the next task on claim 7", e)
		}
		w.d.Check()
	}
}
