package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// naiveJobQueue is a queue of one request, and the naive truth about its tasks.
type naiveJobQueue struct {
	t       *testing.T
	ready   []int
	attempt map[int]roost.AttemptNumber
	live    map[roost.AttemptID]bool
	lost    int
	done    map[int]bool
	gang    int // tasks that start together; 0: each for itself
	// tasks whose next attempt is to run on the claim of the last one
	restarts   map[int]bool
	lostAfter  time.Duration
	notedAfter time.Duration
	silent     int // attempts whose node is silent
	mayOverlap bool

	walltime    time.Duration
	reservation string
}

func newNaiveJobQueue(t *testing.T, tasks int) *naiveJobQueue {
	b := &naiveJobQueue{t: t, attempt: map[int]roost.AttemptNumber{}, live: map[roost.AttemptID]bool{},
		done: map[int]bool{}}
	for i := range tasks {
		b.ready = append(b.ready, i)
	}
	return b
}

func (b *naiveJobQueue) ReadyTasks(RequestID) int       { return len(b.ready) }
func (b *naiveJobQueue) Lease(RequestID) time.Duration  { return time.Minute }
func (b *naiveJobQueue) IsMovable(roost.AttemptID) bool { return true }

func (b *naiveJobQueue) InsideAllocs(RequestID) (InsideAllocs, bool) { return InsideAllocs{}, false }

func (b *naiveJobQueue) AssignInside(RequestID, roost.TaskID, string, string, uint64) (roost.AttemptID, bool) {
	panic("nothing is inside")
}
func (b *naiveJobQueue) SilenceRules(RequestID) SilenceRules {
	return SilenceRules{NotedAfter: b.notedAfter, LostAfter: b.lostAfter, Overlap: b.mayOverlap}
}
func (b *naiveJobQueue) RecordSilence(a roost.AttemptID, _ string) {
	if !b.IsLive(a) {
		panic(fmt.Sprintf("%v is silent, and not live", a))
	}
	b.silent++
}
func (b *naiveJobQueue) RecordReturn(roost.AttemptID)    { b.silent = 0 }
func (b *naiveJobQueue) ReusesClaim(t roost.TaskID) bool { return b.restarts[t.Index] }
func (b *naiveJobQueue) AssignTask(t roost.TaskID, node, _ string, claim uint64) (roost.AttemptID, bool) {
	n := slices.Index(b.ready, t.Index)
	if n < 0 {
		return roost.AttemptID{}, false
	}
	b.ready = append([]int{t.Index}, slices.Delete(b.ready, n, n+1)...)
	delete(b.restarts, t.Index)
	return b.Assign(0, node, "", claim)
}
func (b *naiveJobQueue) RuntimeBound(RequestID) (time.Duration, string) {
	return b.walltime, b.reservation
}
func (b *naiveJobQueue) IsLive(a roost.AttemptID) bool { return b.live[a] }

func (b *naiveJobQueue) NextGang(RequestID) (int, bool) {
	if len(b.ready) < b.gang {
		return 0, true
	}
	return b.gang, b.gang > 0
}

func (b *naiveJobQueue) GangRequest(r RequestID) (RequestID, bool) { return r, false }

func (b *naiveJobQueue) AssignGang(r RequestID, seats []GangClaim) (attempts []roost.AttemptID, ok bool) {
	if b.gang != len(seats) || len(b.ready) < b.gang {
		return nil, false
	}
	for _, s := range seats {
		a, _ := b.Assign(r, s.Node, s.Address, s.Claim)
		attempts = append(attempts, a)
	}
	return attempts, true
}

func (b *naiveJobQueue) Assign(_ RequestID, node, _ string, claim uint64) (roost.AttemptID, bool) {
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

func (b *naiveJobQueue) RecordLost(a roost.AttemptID, _ string) {
	if !b.live[a] {
		b.t.Fatalf("%v lost, and it is not live", a)
	}
	delete(b.live, a)
	b.lost++
	b.ready = append(b.ready, a.Task.Index)
}

func (b *naiveJobQueue) recordEnd(a roost.AttemptID) {
	if !b.live[a] || b.done[a.Task.Index] {
		b.t.Fatalf("%v recorded twice or out of its life", a)
	}
	delete(b.live, a)
	b.done[a.Task.Index] = true
}

// fakeStartd is a startd as DESIGN §5 describes it. It drops messages of a superseded
// session, and its report of its claims is the truth.
type fakeStartd struct {
	name   string
	up     bool
	next   uint64
	claims map[uint64]*fakeClaim
	used   map[roost.GrantID]bool
	inbox  []Effect // on the present session, not yet received
}

type fakeClaim struct {
	grant   roost.GrantID
	attempt roost.AttemptID
	exited  bool
	waiting bool // it has no resources
}

type testPool struct {
	*testing.T
	rng       *rand.Rand
	now       roost.BootTime
	b         *naiveJobQueue
	d         *Dispatcher
	machines  map[string]*fakeStartd
	names     []string
	grants    uint64
	overlap   map[roost.TaskID]int
	withdrawn map[roost.AttemptID]bool // back, before they had started
	moved     int
	slept     int
}

func newTestPool(t *testing.T, seed uint64, tasks, machines int) *testPool {
	w := &testPool{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, b: newNaiveJobQueue(t, tasks),
		machines: map[string]*fakeStartd{}, overlap: map[roost.TaskID]int{}, withdrawn: map[roost.AttemptID]bool{},
	}
	opt := DefaultOptions()
	opt.MoveAfter = 200 * time.Millisecond
	w.d = New(w.b, opt)
	for i := range machines {
		name := fmt.Sprintf("n%d", i)
		w.names = append(w.names, name)
		w.machines[name] = &fakeStartd{name: name, claims: map[uint64]*fakeClaim{},
			used: map[roost.GrantID]bool{}, next: 1}
	}
	return w
}

// deliver moves effects onto the sessions. Effects for a node that is away are lost, as
// on a broken connection.
func (w *testPool) deliver() {
	for _, e := range w.d.Effects() {
		var node string
		switch e := e.(type) {
		case RequestClaim:
			node = e.Claim.Node
		case ActivateClaim:
			node = e.Node
		case VacateAttempt:
			node = e.Node
		case AcknowledgeExit:
			node = e.Node
		case ReleaseClaim:
			node = e.Node
		default:
			continue
		}
		if m := w.machines[node]; m.up {
			m.inbox = append(m.inbox, e)
		}
	}
}

func (w *testPool) receive(m *fakeStartd) {
	if len(m.inbox) == 0 {
		return
	}
	e := m.inbox[0]
	m.inbox = m.inbox[1:]
	switch e := e.(type) {
	case RequestClaim:
		if m.used[e.Claim.Grant.GrantID] || w.rng.IntN(8) == 0 {
			w.d.ClaimAnswered(w.now, m.name, ClaimReply{Grant: e.Claim.Grant.GrantID, Claim: 0, AdSequence: 1,
				Reason: "refused"})
			return
		}
		m.used[e.Claim.Grant.GrantID] = true
		m.next++
		h := &fakeClaim{grant: e.Claim.Grant.GrantID, waiting: e.Claim.MayWait && w.rng.IntN(2) == 0}
		m.claims[m.next] = h
		if w.rng.IntN(4) > 0 { // else the answer is lost: the session breaks
			w.d.ClaimAnswered(w.now, m.name, ClaimReply{Grant: e.Claim.Grant.GrantID, Claim: m.next, AdSequence: 1,
				Waiting: h.waiting, WaitTime: time.Second})
		} else {
			w.disconnect(m)
		}
	case ActivateClaim:
		w.start(m, m.claims[e.Claim], e.Attempt)
	case VacateAttempt:
		for _, h := range m.claims {
			if h.attempt == e.Attempt && !h.exited {
				w.withdrawn[h.attempt] = h.waiting
				w.exit(m, h)
			}
		}
	case AcknowledgeExit:
		for _, h := range m.claims {
			if h.attempt == e.Attempt && h.exited {
				h.attempt, h.exited = roost.AttemptID{}, false
			}
		}
	case ReleaseClaim:
		if h := m.claims[e.Claim]; h != nil {
			if h.attempt != (roost.AttemptID{}) && !h.exited && !h.waiting {
				w.overlap[h.attempt.Task]--
			}
			delete(m.claims, e.Claim)
		}
	}
}

func (w *testPool) start(m *fakeStartd, h *fakeClaim, a roost.AttemptID) {
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

func (w *testPool) run(m *fakeStartd, a roost.AttemptID) {
	if w.overlap[a.Task]++; w.overlap[a.Task] > 1 {
		w.Fatalf("two attempts of %v are alive", a.Task)
	}
	w.d.Started(m.name, a)
}

func (w *testPool) exit(m *fakeStartd, h *fakeClaim) {
	h.exited = true
	if !h.waiting {
		w.overlap[h.attempt.Task]--
	}
	if m.up {
		w.exited(m, h.attempt)
	}
}

func (w *testPool) exited(m *fakeStartd, a roost.AttemptID) {
	if w.d.Exited(w.now, m.name, a) {
		if w.withdrawn[a] {
			w.moved++
			delete(w.b.live, a)
			w.b.ready = append(w.b.ready, a.Task.Index)
		} else {
			w.b.recordEnd(a)
		}
		w.d.Finished(w.now, a)
	}
}

func (w *testPool) disconnect(m *fakeStartd) {
	if m.up {
		m.up, m.inbox = false, nil
		w.d.Disconnected(w.now, m.name)
	}
}

func (w *testPool) connect(m *fakeStartd) {
	if m.up || w.d.nodes[m.name] == nil {
		return
	}
	m.up = true
	var present []ReportedClaim
	for id := uint64(0); id <= m.next; id++ {
		if h := m.claims[id]; h != nil {
			present = append(present, ReportedClaim{Claim: id, Grant: h.grant, Attempt: h.attempt,
				Running: !h.exited && !h.waiting, Exited: h.exited, Waiting: h.waiting})
		}
	}
	w.d.Connected(w.now, m.name, present)
	for _, p := range present {
		if p.Exited {
			w.exited(m, p.Attempt)
		}
	}
}

func (w *testPool) step(faults bool) {
	m := w.machines[w.names[w.rng.IntN(len(w.names))]]
	switch w.rng.IntN(8) {
	case 0:
		w.grants++
		w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: w.grants}, Node: m.name,
			Address: "unix:/" + m.name})
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
		w.allocate(m)
	case 4:
		if faults && w.rng.IntN(6) == 0 {
			w.disconnect(m)
		} else {
			w.connect(m)
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

// sleep suspends the schedd's host for an hour: all leases run out meanwhile, and what
// runs elsewhere is killed there. When it wakes its connections are broken, and whatever
// it hears or looks at first is about what was an hour ago.
func (w *testPool) sleep() {
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
				w.withdrawn[h.attempt] = true
				if h.exited = true; !h.waiting {
					w.overlap[h.attempt.Task]--
				}
			}
		}
		w.disconnect(m)
		if w.rng.IntN(2) == 0 {
			w.connect(m)
		}
	}
}

// allocate gives a claim that waits its resources.
func (w *testPool) allocate(m *fakeStartd) {
	for id := uint64(0); id <= m.next && w.rng.IntN(4) == 0; id++ {
		if h := m.claims[id]; h != nil && h.waiting && !h.exited {
			h.waiting = false
			if m.up {
				w.d.Allocated(w.now, m.name, id, "")
			}
			if h.attempt != (roost.AttemptID{}) {
				w.run(m, h.attempt)
			}
			return
		}
	}
}

// TestFaults checks that no fault makes a task run twice at once or be recorded twice.
// When the faults stop, everything finishes.
func TestFaults(t *testing.T) {
	moved, slept := 0, 0
	defer func() {
		if moved == 0 || slept == 0 {
			t.Errorf("%d tasks were taken back from where they waited, and the schedd slept %d times", moved, slept)
		}
	}()
	for seed := range uint64(300) {
		w := newTestPool(t, seed, 20, 3)
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

// TestLeaseRunsOut checks that a node that never returns has its attempts until its last
// lease expires. The schedd adds the clock drift and the time to kill.
func TestLeaseRunsOut(t *testing.T) {
	w := newTestPool(t, 1, 1, 1)
	m := w.machines["n0"]
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
	w.connect(m)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
	sent := w.now
	w.disconnect(m)
	if len(w.b.live) != 1 {
		t.Fatalf("%d attempts live, want 1", len(w.b.live))
	}
	lapses := sent + time.Minute + time.Minute/100 + 10*time.Second
	task := roost.JobID{Seq: 1, Host: "h"}.Task(0)
	if got, ok := w.d.NodeSilence(task); !ok || got != (NodeSilence{"n0", w.now, lapses}) {
		t.Errorf("silent: got %+v, %v, want since %v, until %v", got, ok, w.now, lapses)
	}
	w.d.Tick(sent + time.Minute + 10*time.Second)
	if len(w.b.live) != 1 {
		t.Fatal("given up before drift was allowed for")
	}
	w.d.Tick(lapses)
	if _, ok := w.d.NodeSilence(task); ok {
		t.Error("a task that was given up is said to be on a silent node")
	}
	if len(w.b.live) != 0 || w.b.lost != 1 {
		t.Fatalf("%d live and %d lost after the lease, want 0 and 1", len(w.b.live), w.b.lost)
	}
}

// TestIdleClaimReleased checks that an idle claim is released after its linger time. An
// old claim is released as soon as its task has ended.
func TestIdleClaimReleased(t *testing.T) {
	w := newTestPool(t, 3, 1, 1)
	w.machines["n0"].up = true
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
	w.exited(w.machines["n0"], a)
	if w.d.ClaimCounts(0) != 1 || !w.d.BecameIdle() || w.d.BecameIdle() {
		t.Fatal("the claim does not wait for another task, or does not say so once")
	}
	w.d.Effects()
	w.d.Tick(w.now + 99*time.Millisecond)
	if e := w.d.Effects(); len(e) != 0 {
		t.Fatalf("given back too soon: %v", e)
	}
	w.d.Tick(w.now + 100*time.Millisecond)
	if e := w.d.Effects(); len(e) != 1 || e[0] != (ReleaseClaim{"n0", 7}) {
		t.Fatalf("got %v, want a release of claim 7", e)
	}
	if left := w.d.ShrunkRequests(); len(left) != 1 || left[0] != 0 || len(w.d.ShrunkRequests()) != 0 {
		t.Errorf("requests %v have lost claims, want the one, once", left)
	}
}
