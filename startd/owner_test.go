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
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeGuard is a guard that sees what it is told.
type fakeGuard struct {
	wire.UnimplementedGuardServer
	t       testing.TB
	server  *rpc.Server
	address string

	mu           sync.Mutex
	observations *wire.GuardSigns
	report       *wire.GuardReport
	changed      chan struct{} // closed at each change of the two above
}

// withFakeGuard makes the test's machine a desktop with a fake guard. Tasks resume there
// after a moment, and leave after the given time.
func withFakeGuard(t testing.TB, leave time.Duration) (func(*testStartd), *fakeGuard) {
	g := &fakeGuard{t: t, changed: make(chan struct{}),
		observations: &wire.GuardSigns{Sequence: 1, Input: 1, MemoryAvailable: 1 << 40}}
	return func(p *testStartd) {
		p.node.Startds[0].Policy = config.OwnerPolicy{
			Preset: "desktop", StartAfter: 100 * time.Millisecond, ResumeAfter: 100 * time.Millisecond,
			LeaveAfter: leave, Vacate: 20 * time.Second,
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
	g.server = rpc.NewServer(nil, peer.MethodAccess())
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
		observations, changed := g.observations, g.changed
		g.mu.Unlock()
		if observations.Sequence != sent {
			sent = observations.Sequence
			if err := stream.Send(observations); err != nil {
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

// setObservations has the guard see something else, and returns the number of those
// signs.
func (g *fakeGuard) setObservations(change func(*wire.GuardSigns)) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := &wire.GuardSigns{Sequence: g.observations.Sequence + 1, Input: g.observations.Input,
		MemoryAvailable: g.observations.MemoryAvailable}
	change(next)
	g.observations = next
	g.change()
	return next.Sequence
}

// pressKey is somebody who touches a key and stays; away, that he has left.
func (g *fakeGuard) pressKey() uint64 {
	return g.setObservations(func(s *wire.GuardSigns) {
		s.Input, s.Busy, s.Urgent = int64(boottime.Now()), "a video call", true
	})
}

func (g *fakeGuard) away() { g.setObservations(func(*wire.GuardSigns) {}) }

// awaitReport returns the first report that holds.
func (g *fakeGuard) awaitReport(what string, holds func(*wire.GuardReport) bool) *wire.GuardReport {
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

func (g *fakeGuard) awaitActed(sequence uint64) *wire.GuardReport {
	g.t.Helper()
	return g.awaitReport("has acted", func(r *wire.GuardReport) bool { return r.GetActed() >= sequence })
}

// awaitAvailable waits until the machine is.
func (p *testStartd) awaitAvailable() {
	p.t.Helper()
	p.ads.awaitAd(p.t, "is lent", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		s, _ := ad.Str(roost.AttrState)
		return s != "Owner"
	})
}

// awaitSuspended waits for that news of an attempt.
func (s *fakeSchedd) awaitSuspended(a *wire.AttemptRef) *wire.Suspended {
	s.t.Helper()
	m := s.nextMessage("news of the owner")
	if got := m.GetSuspended(); got == nil || got.GetAttempt().GetJob() != a.Job {
		s.t.Fatalf("got %v, want that %v is suspended, or not", m, a)
	}
	return m.GetSuspended()
}

// startCounter is a program that writes to a file as fast as it can, and how far it has
// come.
func (s *fakeSchedd) startCounter(name string) (*wire.Program, func() int64) {
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

// isCounting reports whether a count rises within a while.
func isCounting(count func() int64) bool {
	before := count()
	waitBriefly(60 * time.Millisecond)
	return count() > before
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); waitBriefly(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// TestOwner checks that tasks are frozen while the machine owner is present. They resume
// when the owner has left, and nothing new is accepted meanwhile.
func TestOwner(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{true, false} {
		t.Run(fmt.Sprintf("groups %v", grouped), func(t *testing.T) {
			t.Parallel()
			before, g := withFakeGuard(t, time.Hour)
			p := newTestStartdWith(t, func(p *testStartd) {
				before(p)
				if !grouped {
					p.node.Startds[0].Limits.Enforce = config.EnforceNever
				}
			})
			testOwner(t, p, g)
		})
	}
}

func testOwner(t *testing.T, p *testStartd, g *fakeGuard) {
	p.awaitAvailable()
	s := p.connect("host1", 1)
	prog, count := s.startCounter("count")
	const walltime = 15 * time.Second // longer than it takes a busy machine to see it run and to freeze it
	prog.WalltimeNs = int64(walltime)
	spare := s.claim()
	claim, began := s.claim(), time.Now()
	a := s.activate(claim, prog, false)
	s.awaitStarted(a)
	await(t, "it runs", func() bool { return count() > 0 })

	r := g.awaitActed(g.pressKey())
	left := walltime - time.Since(began) // at least
	if isCounting(count) {
		t.Error("the owner is there, and it runs")
	}
	if f := r.GetFreezes(); len(f) != 1 || f[0].GetTasks() != 1 || f[0].GetTook() <= 0 {
		t.Errorf("freezes: %v", f)
	}
	if r.GetInterruptions() != 1 || r.GetWorstFreeze() <= 0 || len(r.GetTenants()) != 1 ||
		r.GetTenants()[0].GetState() != "suspended" {
		t.Errorf("report: %v", r)
	}
	lost, suspension := "", (*wire.Suspended)(nil)
	for lost == "" || suspension == nil {
		m := s.nextMessage("news")
		lost, suspension = max(lost, m.GetLost().GetReason()), firstSuspended(suspension, m.GetSuspended())
	}
	if !suspension.GetFrozen() || !strings.Contains(suspension.GetReason(), "a video call") ||
		!strings.Contains(lost, "n1") {
		t.Errorf("told %v; claim %d is lost: %q", suspension, spare, lost)
	}
	if reply := s.requestClaim(nil); reply.GetClaim() != 0 || !strings.Contains(reply.GetReason(), "a video call") {
		t.Errorf("a claim while the owner is there: %v", reply)
	}
	// Who suspends it besides, and lets it go on, does not let it go on for the owner.
	for _, frozen := range []bool{true, false} {
		s.send(&wire.ToStartd{Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: a, Frozen: frozen}}})
		waitBriefly(50 * time.Millisecond)
		if isCounting(count) {
			t.Errorf("suspended: %v, and it runs", frozen)
		}
	}
	waitBriefly(walltime)
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	if len(s.welcome.GetClaims()) != 1 || !s.welcome.GetClaims()[0].GetRunning() || isCounting(count) {
		t.Fatalf("after a restart: %v", s.welcome)
	}
	g.awaitReport("is of the new start", func(r *wire.GuardReport) bool {
		return r.GetActed() > 0 && len(r.GetTenants()) == 1 && r.GetTenants()[0].GetState() == "suspended"
	})
	if isCounting(count) {
		t.Error("the new start lets it run")
	}
	g.awaitReport("says why it is not lent", func(r *wire.GuardReport) bool {
		return strings.Contains(r.GetNotLent(), "a video call")
	})
	frozenCount := count()
	g.away()
	if left > time.Second { // a busy machine may have used up nearly all of its walltime before
		await(t, "it goes on", func() bool { return count() > frozenCount })
	}
	g.awaitReport("says that it is lent again", func(r *wire.GuardReport) bool { return r.GetNotLent() == "" })
	if x := s.awaitExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_WALLTIME {
		t.Errorf("got %v, want its walltime", x.GetStatus())
	}
}

func firstSuspended(a, b *wire.Suspended) *wire.Suspended {
	if a != nil {
		return a
	}
	return b
}

// awaitExit is exited, whatever else is told before.
func (s *fakeSchedd) awaitExit(a *wire.AttemptRef) *wire.Exited {
	s.t.Helper()
	for _, claim := range s.welcome.GetClaims() { // it ended before the session began
		if x := claim.GetExited(); x.GetAttempt().GetJob() == a.Job && claim.GetAttempt().GetJob() == a.Job {
			return x
		}
	}
	for {
		if x := s.nextMessage("an exit").GetExited(); x.GetAttempt().GetJob() == a.Job {
			return x
		}
	}
}

// TestOwnerStays: what stands still for long leaves, and is killed as it stands.
func TestOwnerStays(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, 300*time.Millisecond)
	p := newTestStartdWith(t, before)
	p.awaitAvailable()
	s := p.connect("host1", 1)
	prog, count := s.startCounter("count")
	prog.Arguments[1] = append([]byte("trap 'echo bye' TERM; "), prog.Arguments[1]...)
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.awaitActed(g.pressKey())
	before2 := count()
	x := s.awaitExit(a)
	if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_VACATED || !strings.Contains(st.GetReason(), "n1") ||
		count() != before2 || len(x.GetStdout()) > 0 {
		t.Errorf("got %s %v; it ran on for %d bytes", exitText(x), st, count()-before2)
	}
}

// TestOwnerAndLease: nobody renews the lease of a task that stands still: it is killed
// all the same.
func TestOwnerAndLease(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, time.Hour)
	p := newTestStartdWith(t, before)
	p.awaitAvailable()
	s := p.connect("host1", 1)
	prog, count := s.startCounter("count")
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.awaitActed(g.pressKey())
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{SinceNs: int64(time.Hour), LeaseS: 1}}})
	if x := s.awaitExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_LEASE {
		t.Errorf("got %v", x.GetStatus())
	}
}

// TestGuardDies: without its guard the machine is its owner's; with it, it is lent again.
func TestGuardDies(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, time.Hour)
	p := newTestStartdWith(t, before)
	p.awaitAvailable()
	s := p.connect("host1", 1)
	prog, count := s.startCounter("count")
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.server.Stop()
	if suspension := s.awaitSuspended(a); !suspension.GetFrozen() ||
		!strings.Contains(suspension.GetReason(), "guard") {
		t.Errorf("told %v", suspension)
	}
	await(t, "it stands still", func() bool { return !isCounting(count) })
	g.setObservations(func(*wire.GuardSigns) {})
	g.serve()
	if suspension := s.awaitSuspended(a); suspension.GetFrozen() {
		t.Errorf("told %v", suspension)
	}
	await(t, "it goes on", func() bool { return isCounting(count) })
	s.vacate(a, true)
	s.awaitExit(a)
}

// TestOwnerComesWhileTasksStart: no task that was being started when the owner came runs.
func TestOwnerComesWhileTasksStart(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, time.Hour)
	p := newTestStartdWith(t, before)
	p.awaitAvailable()
	s := p.connect("host1", 1)
	const n = 8
	var claims []uint64
	for range n {
		claims = append(claims, s.requestClaim(func(r *wire.ClaimRequest) {
			r.Resources = &wire.Resources{MilliCpu: 400, Memory: 256 << 20}
		}).GetClaim())
	}
	var counts []func() int64
	for i, claim := range claims {
		prog, count := s.startCounter("count" + strconv.Itoa(i))
		counts = append(counts, count)
		s.activate(claim, prog, false)
		if i == n/2 {
			s.nextMessage("the first start")
			g.pressKey()
		}
	}
	g.awaitActed(2)
	await(t, "all stand still", func() bool {
		for _, count := range counts {
			if isCounting(count) {
				return false
			}
		}
		return true
	})
	g.awaitReport("has nobody who is about to run", func(r *wire.GuardReport) bool {
		for _, taskEntry := range r.GetTenants() {
			if taskEntry.GetState() != "suspended" {
				return false
			}
		}
		return true
	})
	for i, count := range counts {
		if isCounting(count) {
			t.Errorf("task %d runs", i)
		}
	}
}

// TestOwnerLendsLess checks that the youngest claim leaves when the owner's file lowers
// the limits. No more than that is given afterwards, and a restart does not forget it.
func TestOwnerLendsLess(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, time.Hour)
	file := ""
	p := newTestStartdWith(t, func(p *testStartd) {
		before(p)
		file = filepath.Join(p.node.Dir, "owner.hcl")
		p.node.Owner.File = file
	})
	p.awaitAvailable()
	s := p.connect("host1", 1)
	core := func(r *wire.ClaimRequest) { r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20} }
	var attempts []*wire.AttemptRef
	for range 2 {
		a := s.activate(s.requestClaim(core).GetClaim(), s.shell("sleep 1000"), false)
		s.awaitStarted(a)
		attempts = append(attempts, a)
	}
	if err := os.WriteFile(file, []byte("cpus = 1\nmemory = \"1GiB\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.setObservations(func(s *wire.GuardSigns) { s.OwnerRules = 1 })
	x := s.awaitExit(attempts[1])
	if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_VACATED ||
		!strings.Contains(st.GetReason(), "the owner of n1 lends no more than 1 cpu and 1GiB of it") {
		t.Errorf("got %v", st)
	}
	s.acknowledge(attempts[1])
	shown := func(what string) {
		p.ads.awaitAd(t, what, func(_ *wire.AdUpdate, ad *classad.Ad) bool {
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
	g.setObservations(func(s *wire.GuardSigns) { s.OwnerRules = 2 })
	p.ads.awaitAd(t, "is lent as a whole", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		cpus, _ := ad.Int(roost.AttrTotalCpus)
		return cpus > 1
	})
	s.vacate(attempts[0], true)
	s.awaitExit(attempts[0])
}
