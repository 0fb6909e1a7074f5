package startd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeGuard is a guard that sees what it is told.
type fakeGuard struct {
	wire.UnimplementedGuardServer
	t       testing.TB
	server  *rpc.Server
	address string

	mu      sync.Mutex
	signs   *wire.GuardSigns
	report  *wire.GuardReport
	changed chan struct{} // closed at each change of the two above
}

// guarded makes a place's machine a desktop with a guard, on which tasks go on after a moment and leave after a while.
func guarded(t testing.TB, leave time.Duration) (func(*place), *fakeGuard) {
	g := &fakeGuard{t: t, changed: make(chan struct{}), signs: &wire.GuardSigns{Sequence: 1, Input: 1, MemoryAvailable: 1 << 40}}
	return func(p *place) {
		p.node.Startds[0].Policy = config.Policy{
			Preset: "desktop", StartAfter: 100 * time.Millisecond, ResumeAfter: 100 * time.Millisecond, LeaveAfter: leave, Vacate: 20 * time.Second,
		}
		g.address = p.node.GuardAddress()
		g.serve()
	}, g
}

func (g *fakeGuard) serve() {
	g.t.Helper()
	if err := os.MkdirAll(filepath.Dir(strings.TrimPrefix(g.address, "unix:")), 0o755); err != nil {
		g.t.Fatal(err)
	}
	l, err := rpc.Listen(g.address, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	g.server = rpc.NewServer(nil, auth.Methods())
	wire.RegisterGuardServer(g.server, g)
	go g.server.Serve(l)
	g.t.Cleanup(g.server.Stop)
}

func (g *fakeGuard) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *fakeGuard) Watch(stream grpc.BidiStreamingServer[wire.GuardReport, wire.GuardSigns]) error {
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.report = r
			g.change()
			g.mu.Unlock()
		}
	}()
	sent := uint64(0)
	still := time.NewTicker(2 * time.Second)
	defer still.Stop()
	for {
		g.mu.Lock()
		signs, changed := g.signs, g.changed
		g.mu.Unlock()
		if signs.Sequence != sent {
			sent = signs.Sequence
			if err := stream.Send(signs); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-still.C:
			sent = 0 // once more
		case <-stream.Context().Done():
			return nil
		}
	}
}

// see has the guard see something else, and returns the number of those signs.
func (g *fakeGuard) see(change func(*wire.GuardSigns)) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := &wire.GuardSigns{Sequence: g.signs.Sequence + 1, Input: g.signs.Input, MemoryAvailable: g.signs.MemoryAvailable}
	change(next)
	g.signs = next
	g.change()
	return next.Sequence
}

// key is somebody who touches a key and stays; away, that he has left.
func (g *fakeGuard) key() uint64 {
	return g.see(func(s *wire.GuardSigns) { s.Input, s.Busy, s.Urgent = int64(boottime()), "a video call", true })
}

func (g *fakeGuard) away() { g.see(func(*wire.GuardSigns) {}) }

// await returns the first report that holds.
func (g *fakeGuard) await(what string, holds func(*wire.GuardReport) bool) *wire.GuardReport {
	g.t.Helper()
	late := time.After(time.Minute)
	for {
		g.mu.Lock()
		r, changed := g.report, g.changed
		g.mu.Unlock()
		if r != nil && holds(r) {
			return r
		}
		select {
		case <-changed:
		case <-late:
			g.t.Fatalf("no report that %s; the last is %v", what, r)
		}
	}
}

func (g *fakeGuard) acted(sequence uint64) *wire.GuardReport {
	g.t.Helper()
	return g.await("has acted", func(r *wire.GuardReport) bool { return r.GetActed() >= sequence })
}

// lent waits until the machine is.
func (p *place) lent() {
	p.t.Helper()
	p.ads.await(p.t, "is lent", func(_ *wire.AdUpdate, ad *classad.Ad) bool { s, _ := ad.Str(roost.AttrState); return s != "Owner" })
}

// suspended waits for that news of an attempt.
func (s *schedd) suspended(a *wire.AttemptRef) *wire.Suspended {
	s.t.Helper()
	m := s.next("news of the owner")
	if got := m.GetSuspended(); got == nil || got.GetAttempt().GetJob() != a.Job {
		s.t.Fatalf("got %v, want that %v is suspended, or not", m, a)
	}
	return m.GetSuspended()
}

// counter is a program that writes to a file as fast as it can, and how far it has come.
func (s *schedd) counter(name string) (*wire.Program, func() int64) {
	path := filepath.Join(s.p.node.Dir, name)
	prog := s.shell("while :; do echo >>" + path + "; done")
	return prog, func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
}

// moves reports whether a count rises within a while.
func moves(count func() int64) bool {
	before := count()
	wait(60 * time.Millisecond)
	return count() > before
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); wait(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// TestOwner: tasks stand still while their machine's owner is there, and go on when he has left; nothing new is taken meanwhile.
func TestOwner(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{true, false} {
		t.Run(fmt.Sprintf("groups %v", grouped), func(t *testing.T) {
			t.Parallel()
			before, g := guarded(t, time.Hour)
			p := newPlaceWith(t, func(p *place) {
				before(p)
				if !grouped {
					p.node.Startds[0].Limits.Enforce = config.EnforceNever
				}
			})
			testOwner(t, p, g)
		})
	}
}

func testOwner(t *testing.T, p *place, g *fakeGuard) {
	p.lent()
	s := p.connect("host1", 1)
	prog, count := s.counter("count")
	const walltime = 6 * time.Second // longer than it takes a busy machine to see it run and to freeze it
	prog.WalltimeNs = int64(walltime)
	spare := s.claim()
	a := s.activate(s.claim(), prog, false)
	s.started(a)
	await(t, "it runs", func() bool { return count() > 0 })

	r := g.acted(g.key())
	if moves(count) {
		t.Error("the owner is there, and it runs")
	}
	if r.GetInterruptions() != 1 || r.GetWorstFreeze() <= 0 || len(r.GetTenants()) != 1 || r.GetTenants()[0].GetState() != "suspended" {
		t.Errorf("report: %v", r)
	}
	lost, told := "", (*wire.Suspended)(nil)
	for lost == "" || told == nil {
		m := s.next("news")
		lost, told = max(lost, m.GetLost().GetReason()), or(told, m.GetSuspended())
	}
	if !told.GetFrozen() || !strings.Contains(told.GetReason(), "a video call") || !strings.Contains(lost, "n1") {
		t.Errorf("told %v; claim %d is lost: %q", told, spare, lost)
	}
	if reply := s.ask(nil); reply.GetClaim() != 0 || !strings.Contains(reply.GetReason(), "a video call") {
		t.Errorf("a claim while the owner is there: %v", reply)
	}
	// Who suspends it besides, and lets it go on, does not let it go on for the owner.
	for _, frozen := range []bool{true, false} {
		s.send(&wire.ToStartd{Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: a, Frozen: frozen}}})
		wait(50 * time.Millisecond)
		if moves(count) {
			t.Errorf("suspended: %v, and it runs", frozen)
		}
	}
	wait(walltime)
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	if len(s.welcome.GetClaims()) != 1 || !s.welcome.GetClaims()[0].GetRunning() || moves(count) {
		t.Fatalf("after a restart: %v", s.welcome)
	}
	g.await("is of the new start", func(r *wire.GuardReport) bool {
		return r.GetActed() > 0 && len(r.GetTenants()) == 1 && r.GetTenants()[0].GetState() == "suspended"
	})
	if moves(count) {
		t.Error("the new start lets it run")
	}
	g.await("says why it is not lent", func(r *wire.GuardReport) bool { return strings.Contains(r.GetNotLent(), "a video call") })
	stood := count()
	g.away()
	await(t, "it goes on", func() bool { return count() > stood }) // what is left of its walltime may be short
	g.await("says that it is lent again", func(r *wire.GuardReport) bool { return r.GetNotLent() == "" })
	if x := s.exitedAtLast(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_WALLTIME {
		t.Errorf("got %v, want its walltime", x.GetStatus())
	}
}

func or(a, b *wire.Suspended) *wire.Suspended {
	if a != nil {
		return a
	}
	return b
}

// exitedAtLast is exited, whatever else is told before.
func (s *schedd) exitedAtLast(a *wire.AttemptRef) *wire.Exited {
	s.t.Helper()
	for {
		if x := s.next("an exit").GetExited(); x.GetAttempt().GetJob() == a.Job {
			return x
		}
	}
}

// TestOwnerStays: what stands still for long leaves, and is killed as it stands.
func TestOwnerStays(t *testing.T) {
	t.Parallel()
	before, g := guarded(t, 300*time.Millisecond)
	p := newPlaceWith(t, before)
	p.lent()
	s := p.connect("host1", 1)
	prog, count := s.counter("count")
	prog.Arguments[1] = append([]byte("trap 'echo bye' TERM; "), prog.Arguments[1]...)
	a := s.activate(s.claim(), prog, false)
	s.started(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.acted(g.key())
	before2 := count()
	x := s.exitedAtLast(a)
	if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_VACATED || !strings.Contains(st.GetReason(), "n1") || count() != before2 || len(x.GetStdout()) > 0 {
		t.Errorf("got %s %v; it ran on for %d bytes", describe(x), st, count()-before2)
	}
}

// TestOwnerAndLease: nobody renews the lease of a task that stands still: it is killed all the same.
func TestOwnerAndLease(t *testing.T) {
	t.Parallel()
	before, g := guarded(t, time.Hour)
	p := newPlaceWith(t, before)
	p.lent()
	s := p.connect("host1", 1)
	prog, count := s.counter("count")
	a := s.activate(s.claim(), prog, false)
	s.started(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.acted(g.key())
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{SinceNs: int64(time.Hour), LeaseS: 1}}})
	if x := s.exitedAtLast(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_LEASE {
		t.Errorf("got %v", x.GetStatus())
	}
}

// TestGuardDies: without its guard the machine is its owner's; with it, it is lent again.
func TestGuardDies(t *testing.T) {
	t.Parallel()
	before, g := guarded(t, time.Hour)
	p := newPlaceWith(t, before)
	p.lent()
	s := p.connect("host1", 1)
	prog, count := s.counter("count")
	a := s.activate(s.claim(), prog, false)
	s.started(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.server.Stop()
	if told := s.suspended(a); !told.GetFrozen() || !strings.Contains(told.GetReason(), "guard") {
		t.Errorf("told %v", told)
	}
	await(t, "it stands still", func() bool { return !moves(count) })
	g.see(func(*wire.GuardSigns) {})
	g.serve()
	if told := s.suspended(a); told.GetFrozen() {
		t.Errorf("told %v", told)
	}
	await(t, "it goes on", func() bool { return moves(count) })
	s.vacate(a, true)
	s.exitedAtLast(a)
}

// TestOwnerComesWhileTasksStart: no task that was being started when the owner came runs.
func TestOwnerComesWhileTasksStart(t *testing.T) {
	t.Parallel()
	before, g := guarded(t, time.Hour)
	p := newPlaceWith(t, before)
	p.lent()
	s := p.connect("host1", 1)
	const n = 8
	var claims []uint64
	for range n {
		claims = append(claims, s.ask(func(r *wire.ClaimRequest) { r.Resources = &wire.Resources{MilliCpu: 400, Memory: 256 << 20} }).GetClaim())
	}
	var counts []func() int64
	for i, claim := range claims {
		prog, count := s.counter("count" + strconv.Itoa(i))
		counts = append(counts, count)
		s.activate(claim, prog, false)
		if i == n/2 {
			s.next("the first start")
			g.key()
		}
	}
	g.acted(2)
	await(t, "all stand still", func() bool {
		for _, count := range counts {
			if moves(count) {
				return false
			}
		}
		return true
	})
	g.await("has nobody who is about to run", func(r *wire.GuardReport) bool {
		for _, tenant := range r.GetTenants() {
			if tenant.GetState() != "suspended" {
				return false
			}
		}
		return true
	})
	for i, count := range counts {
		if moves(count) {
			t.Errorf("task %d runs", i)
		}
	}
}

// TestOwnerLendsLess: when the owner says in his file that he lends less, the youngest leaves, and no more is given than that; a restart does not forget it.
func TestOwnerLendsLess(t *testing.T) {
	t.Parallel()
	before, g := guarded(t, time.Hour)
	file := ""
	p := newPlaceWith(t, func(p *place) {
		before(p)
		file = filepath.Join(p.node.Dir, "owner.hcl")
		p.node.Owner.File = file
	})
	p.lent()
	s := p.connect("host1", 1)
	core := func(r *wire.ClaimRequest) { r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20} }
	var attempts []*wire.AttemptRef
	for range 2 {
		a := s.activate(s.ask(core).GetClaim(), s.shell("sleep 1000"), false)
		s.started(a)
		attempts = append(attempts, a)
	}
	if err := os.WriteFile(file, []byte("cpus = 1\nmemory = \"1GiB\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.see(func(s *wire.GuardSigns) { s.OwnerRules = 1 })
	x := s.exitedAtLast(attempts[1])
	if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_VACATED || !strings.Contains(st.GetReason(), "the owner of n1 lends no more than 1 cpu and 1GiB of it") {
		t.Errorf("got %v", st)
	}
	s.acknowledge(attempts[1])
	shown := func(what string) {
		p.ads.await(t, what, func(_ *wire.AdUpdate, ad *classad.Ad) bool {
			cpus, _ := ad.Int(roost.AttrTotalCpus)
			memory, _ := ad.Int(roost.AttrTotalMemory)
			left, _ := ad.Int(roost.AttrCpus)
			return cpus == 1 && memory == 1024 && left == 0
		})
	}
	shown("says what is lent")
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	if len(s.welcome.GetClaims()) == 0 || !s.welcome.GetClaims()[0].GetRunning() {
		t.Fatalf("after a restart: %v", s.welcome)
	}
	shown("says what is lent after a restart")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.see(func(s *wire.GuardSigns) { s.OwnerRules = 2 })
	p.ads.await(t, "is lent as a whole", func(_ *wire.AdUpdate, ad *classad.Ad) bool { cpus, _ := ad.Int(roost.AttrTotalCpus); return cpus > 1 })
	s.vacate(attempts[0], true)
	s.exitedAtLast(attempts[0])
}
