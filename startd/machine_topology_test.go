package startd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

func TestCoreNodes(t *testing.T) {
	dir := t.TempDir()
	for node, list := range map[string]string{"node0": "0-1,4\n", "node1": "2-3,9-x,7\n", "power": "6\n"} {
		if err := os.Mkdir(filepath.Join(dir, node), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, node, "cpulist"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := coreNodes(dir)
	want := map[int]int{0: 0, 1: 0, 4: 0, 2: 1, 3: 1, 7: 1}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for id, node := range want {
		if n, ok := got[id]; !ok || n != node {
			t.Errorf("core %d: node %d, want %d", id, n, node)
		}
	}
	if got := cpuList(" 3,1-2,2,99999999999,5-70000\n"); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
}

// TestBoundToUnit checks that a task sees only the cores of its resource unit. The
// machine has a unit for each core.
func TestBoundToUnit(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() < 2 {
		t.Skipf("SKIPPED: there is one core only")
	}
	p := newTestStartd(t)
	if h := cgroupsOf(t, p); !h.Enforcement().Cpuset {
		t.Skipf("SKIPPED: this machine cannot bind tasks to cores: %q", h.Enforcement().Missing)
	}
	p.stop()
	own := &p.node.Startds[0]
	own.Resources.CPU, own.Layout = roost.MilliCPU(set.Count())*1000, gpu.LayoutConfig{CPUUnits: set.Count()}
	p.start()
	s := p.connect("host1", 1)
	seen := map[string]bool{}
	for range 2 {
		reply := s.requestClaim(nil)
		if len(reply.GetPlaced().GetCores()) != 1 || len(reply.GetPlaced().GetUnits()) != 1 {
			t.Fatalf("placed on %v", reply.GetPlaced())
		}
		x := s.run(reply.GetClaim(), s.shell("sed -n 's/Cpus_allowed_list:\t//p' /proc/self/status"))
		list := strings.TrimSpace(string(x.GetStdout()))
		if got := cpuList(list); !slices.Equal(got, []int{int(reply.GetPlaced().GetCores()[0])}) {
			t.Errorf("a task of %v may run on cores %s", reply.GetPlaced(), list)
		}
		seen[list] = true
	}
	if len(seen) != 2 {
		t.Errorf("two claims of a whole core each are on %v", seen)
	}
}

// TestPinned: claims of whole cores get cores of their own, one of part of a core runs on
// all.
func TestPinned(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() < 2 {
		t.Skipf("SKIPPED: there is one core only")
	}
	p := newTestStartd(t)
	p.stop()
	own := &p.node.Startds[0]
	own.Resources.CPU, own.Pin = roost.MilliCPU(set.Count())*1000, true
	p.start()
	s := p.connect("host1", 1)
	first, second := s.requestClaim(nil), s.requestClaim(nil)
	a, b := first.GetPlaced().GetCores(), second.GetPlaced().GetCores()
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Fatalf("two claims of a core each are on %v and %v", a, b)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: first.GetClaim()}}})
	if lost := s.nextMessage("the end of the claim").GetLost(); lost.GetClaim() != first.GetClaim() {
		t.Fatalf("got %v", lost)
	}
	part := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.MilliCpu = 500 })
	if part.GetClaim() == 0 || part.GetPlaced().GetCores() != nil {
		t.Errorf("a claim of half a core: %v", part)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: part.GetClaim()}}})
	s.nextMessage("the end of the claim")
	if third := s.requestClaim(nil); !slices.Equal(third.GetPlaced().GetCores(), a) {
		t.Errorf("the core that was given back is %v, and the next claim is on %v", a, third.GetPlaced().GetCores())
	}
}

// TestWaitsOnTheMachine checks that a full machine accepts a claim that waits. The schedd
// sends an attempt for it, which starts when the task before it ends, without another
// message. The claim of that task takes the next turn.
func TestWaitsOnTheMachine(t *testing.T) {
	p := newTestStartd(t)
	p.stop()
	p.node.Startds[0].Queue = config.NodeQueue{Length: 2}
	p.start()
	s := p.connect("host1", 1)
	all := func(r *wire.ClaimRequest) {
		r.MayWait, r.Resources = true, wire.FromResources(roost.Resources{CPU: 4000, Memory: 256 * roost.MiB})
	}
	first := s.requestClaim(all)
	a := s.activate(first.GetClaim(), s.shell("while ! [ -e n1/go ]; do sleep 0.02; done"), false)
	s.awaitStarted(a)
	second := s.requestClaim(all)
	if second.GetClaim() == 0 || !second.GetWaiting() || second.GetPredictedWait() <= 0 || second.GetPlaced() != nil {
		t.Fatalf("the second claim: %v", second)
	}
	b := s.activate(second.GetClaim(), s.shell("echo second"), false)
	other := p.connect("host2", 1) // which names a claim that is not its own, and on which an attempt waits
	for _, uid := range []uint32{other.uid, other.uid + 1} {
		program := other.shell("echo other")
		program.Uid = uid
		other.activate(second.GetClaim(), program, false)
		if lost := other.nextMessage("a refusal").GetLost(); lost.GetClaim() != second.GetClaim() {
			t.Fatalf("another submit node: got %v", lost)
		}
	}
	// what is said twice counts once
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{Claim: second.GetClaim(), Attempt: b,
		Program: s.shell("echo again")}}})
	// what is answered comes after the attempt: it is there now
	s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Memory = 1 << 50 })
	if err := os.WriteFile(filepath.Join(p.node.Dir, "n1/go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if x := s.nextMessage("the end of the first").GetExited(); x.GetAttempt().GetJob() != a.Job || !x.GetWaiting() {
		t.Fatalf("got %v, want the end of the first, whose claim waits now", x)
	}
	if r := s.nextMessage("the turn of the second").GetReady(); r.GetClaim() != second.GetClaim() ||
		len(r.GetPlaced().GetUnits()) != 1 {
		t.Fatalf("got %v, want the second claim to be ready", r)
	}
	s.awaitStarted(b)
	if x := s.awaitOnlyExit(b); string(x.GetStdout()) != "second\n" || x.GetWaiting() {
		t.Errorf("the second: %v, %s", x, x.GetStdout())
	}
	// The first claim is free to run something, and waits still: its schedd has not
	// recorded the end of what was on it. A restart keeps both.
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	waiting := 0
	for _, c := range s.welcome.GetClaims() {
		waits := c.GetWaiting()
		if c.GetExited() == nil { // its end is told as soon as it has been read
			waits = s.nextMessage("the end of what was on a claim").GetExited().GetWaiting()
		}
		if waits {
			waiting++
		}
	}
	if len(s.welcome.GetClaims()) != 2 || waiting != 1 {
		t.Errorf("after a restart: %v", s.welcome.GetClaims())
	}
}
