package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/provision/provider"
)

// The names of these tests follow the list of cases that HyperQueue tests of its
// automatic allocation.

func TestPermitRespectsBacklog(t *testing.T) {
	s := cluster("c", 4)
	s.MaxQueued = 3
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 100, 1, time.Minute)}
	o.run(5 * time.Minute)
	o.wantSubmits(1, 1, 1)
}

func TestFewerThanMaximumPerAllocation(t *testing.T) {
	s := cluster("c", 4)
	s.NodesEach = 5
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 9, 1, time.Minute)}
	o.run(5 * time.Minute)
	o.wantSubmits(3)
}

func TestMaximumTotalShortensLast(t *testing.T) {
	s := cluster("c", 1)
	s.NodesEach, s.MaxPilots, s.MaxQueued = 3, 8, 10
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 100, 1, time.Minute)}
	o.run(5 * time.Minute)
	o.wantSubmits(3, 3, 2)
	if !strings.Contains(o.last.Decisions[0].Reason, "max_pilots") {
		t.Errorf("%+v", o.last.Decisions)
	}
}

func TestMultinodeAlreadyQueued(t *testing.T) {
	s := cluster("c", 4)
	s.MaxQueued = 10
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 4, 4, time.Minute).inGangs(4)}
	o.run(5 * time.Minute)
	o.wantSubmits(4)
	o.demand = append(o.demand, tasks("2.h", 2, 4, time.Minute).inGangs(2))
	o.run(5 * time.Minute)
	o.wantSubmits(4, 2)
}

func TestFillBacklog(t *testing.T) {
	s := cluster("c", 4)
	s.MaxQueued = 2
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 24, 1, time.Minute)}
	o.run(time.Minute)
	o.wantSubmits(1, 1)
	o.answer("k0001", OuterRunning)
	o.run(time.Minute)
	o.wantSubmits(1, 1, 1)
	o.join("k0001", "n1", 4)
	o.answer("k0002", OuterRunning)
	o.run(time.Minute)
	o.wantSubmits(1, 1, 1, 1)
}

func TestUnknownWorkerIsProbedOnce(t *testing.T) {
	s := cluster("c", 4)
	s.Node = provider.NodeShape{}
	s.MaxQueued = 10
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 40, 1, time.Minute)}
	o.run(5 * time.Minute)
	o.wantSubmits(1)
	o.answer("k0001", OuterRunning)
	o.run(time.Minute)
	o.wantSubmits(1)
	o.join("k0001", "n1", 8)
	o.run(5 * time.Minute)
	o.wantSubmits(1, 1, 1, 1, 1)
}

func TestPartlyKnownWorker(t *testing.T) {
	s := cluster("c", 4)
	s.Node.Resources.Memory = 0
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 1, 5, time.Minute)}
	o.run(time.Minute)
	o.wantSubmits()
	o.demand = append(o.demand, tasks("2.h", 20, 4, time.Minute))
	o.run(time.Minute)
	o.wantSubmits(1)
}

func TestReactsToLearntResources(t *testing.T) {
	s := cluster("c", 4)
	s.Node = provider.NodeShape{}
	o := newOuterSystem(t, s)
	large := tasks("1.h", 1, 16, time.Minute)
	o.demand = []Demand{large, tasks("2.h", 1, 1, time.Minute).requiring(`TARGET.Site == "near"`)}
	o.run(time.Minute)
	o.wantSubmits(1)
	o.join("k0001", "n1", 8)
	o.leave("k0001", 1)
	o.now = o.now.Add(time.Hour)
	o.answer("k0001", OuterEnded)
	o.run(10 * time.Minute)
	o.wantSubmits(1) // neither runs there
	if got := o.last.Unmet; len(got) != 2 || !strings.Contains(got[0].Reason, "has 8 cpus at most") {
		t.Errorf("%+v", got)
	}
	o.demand = append(o.demand, tasks("3.h", 1, 1, time.Minute).requiring(`TARGET.Site == "far"`))
	o.run(10 * time.Minute)
	o.wantSubmits(1, 1)
}

func TestUnknownAttributeIsProbed(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 4))
	o.demand = []Demand{tasks("2.h", 1, 1, time.Minute).requiring(`TARGET.PilotProvider == "d"`)}
	o.run(time.Minute)
	o.wantSubmits()
	o.demand = []Demand{tasks("1.h", 20, 1, time.Minute).requiring(
		`TARGET.Site == "far" && TARGET.PilotKey isnt undefined`)}
	o.run(time.Minute)
	o.wantSubmits(1)
}

func TestNothingOnFullBacklog(t *testing.T) {
	s := cluster("c", 1)
	s.MaxQueued = 1
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 5, 1, time.Minute)}
	o.run(time.Hour)
	o.wantSubmits(1)
	if !strings.Contains(o.last.Decisions[0].Reason, "max_queued") {
		t.Errorf("%+v", o.last.Decisions)
	}
}

func TestWorkerOfUnknownAllocation(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 4))
	o.join("nobody-knows", "n1", 4)
	o.run(time.Minute)
	o.wantSubmits()
	if len(o.v.Allocations) != 0 {
		t.Errorf("%v", o.v.Allocations)
	}
}

func TestAllocationStartsWithFirstWorker(t *testing.T) {
	s := cluster("c", 4)
	s.NodesEach = 2
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 8, 1, time.Minute)}
	o.run(5 * time.Second)
	o.wantSubmits(2)
	a := o.v.Allocations["k0001"]
	o.join("k0001", "n1", 4)
	if a.State != Running || a.Joins != 1 || a.Live != 1 {
		t.Fatalf("%+v", a)
	}
	o.join("k0001", "n2", 4)
	if a.Joins != 2 || a.Live != 2 || len(a.Hosts) != 2 {
		t.Fatalf("%+v", a)
	}
	o.now = o.now.Add(10 * time.Minute)
	o.leave("k0001", 1)
	if a.Live != 1 || !a.Left.IsZero() {
		t.Fatalf("%+v", a)
	}
	o.leave("k0001", 1)
	if a.Live != 0 || a.Left.IsZero() || a.State != Running {
		t.Fatalf("%+v", a)
	}
	o.answer("k0001", OuterEnded)
	if a.State != Ended || a.Outcome != Worked {
		t.Fatalf("%+v", a)
	}
}

func TestNoneWithoutTasks(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 4))
	o.run(time.Hour)
	o.wantSubmits()
}

func TestBacklogNotRefilledWhenTasksRunOut(t *testing.T) {
	s := cluster("c", 1)
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 10, 1, time.Minute)}
	o.run(time.Minute)
	o.wantSubmits(1, 1)
	o.demand = nil
	o.answer("k0001", OuterRunning)
	o.answer("k0002", OuterRunning)
	o.run(10 * time.Minute)
	o.wantSubmits(1, 1)
}

func TestSurplusIsCancelledAfterIdle(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 2, 1, time.Minute)}
	o.run(time.Minute)
	o.wantSubmits(1, 1)
	o.demand[0].Units = 1
	o.run(provider.DefaultIdle - 5*time.Second)
	if len(o.cancels) != 0 {
		t.Fatalf("%+v", o.cancels)
	}
	o.run(time.Minute)
	if len(o.cancels) != 1 || o.cancels[0].Key != "k0002" {
		t.Fatalf("%+v", o.cancels)
	}
	if a := o.v.Allocations["k0002"]; a.Outcome != Cancelled || o.v.Providers[0].History.EarlyDeaths != 0 {
		t.Errorf("%+v", a)
	}
}

func TestHighTimeRequestIgnored(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 4)) // an hour; the margin is 72 s
	o.demand = []Demand{tasks("1.h", 1, 1, time.Hour), tasks("2.h", 1, 1, 59*time.Minute), tasks("3.h", 1, 1, 0)}
	o.run(time.Minute)
	o.wantSubmits()
	if got := o.last.Unmet; len(got) != 3 || !strings.Contains(got[0].Reason, "write 58m48s or less") ||
		!strings.Contains(got[2].Reason, "no walltime") {
		t.Errorf("%+v", got)
	}
	o.demand = append(o.demand, tasks("4.h", 1, 1, 58*time.Minute))
	o.run(time.Minute)
	o.wantSubmits(1)
}

func TestPauseAfterFailedSubmits(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 4))
	o.demand = []Demand{tasks("1.h", 1, 1, time.Minute)}
	o.refuse = "no such account"
	var at []time.Duration
	for o.now.Before(epoch.Add(24 * time.Hour)) {
		n := len(o.submits)
		o.step()
		if len(o.submits) > n {
			at = append(at, o.now.Sub(epoch))
		}
		o.now = o.now.Add(5 * time.Second)
	}
	want := []time.Duration{0, 1, 16, 46, 106, 166, 226, 286, 346, 406}
	if len(at) != len(want) {
		t.Fatalf("submits at %v", at)
	}
	for i := range want {
		if at[i] != want[i]*time.Minute {
			t.Errorf("submit %d at %v, want %v", i, at[i], want[i]*time.Minute)
		}
	}
	if got := o.last.Decisions[0].Reason; !strings.Contains(got, "stopped") ||
		!strings.Contains(got, "no such account") || !strings.Contains(got, "roost pilots resume c") {
		t.Error(got)
	}
	o.refuse = ""
	o.v.Resume("c")
	o.step()
	if len(o.submits) != 11 {
		t.Errorf("%d submits", len(o.submits))
	}
}

// TestRateLimiter checks that one accepted submit ends the delays.
func TestRateLimiter(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 2, 1, time.Minute)}
	o.refuse = "down"
	o.step()
	o.now = o.now.Add(59 * time.Second)
	o.step()
	o.wantSubmits(1)
	o.refuse, o.now = "", o.now.Add(time.Second)
	o.step()
	o.wantSubmits(1, 1)
	o.now = o.now.Add(4 * time.Second)
	o.step()
	o.wantSubmits(1, 1)
	o.now = o.now.Add(time.Second)
	o.step()
	o.wantSubmits(1, 1, 1)
}

func TestPauseAfterFailedAllocations(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 8, 1, time.Minute)}
	o.run(10 * time.Second)
	o.wantSubmits(1, 1)
	o.answer("k0001", OuterEnded)
	o.run(time.Minute)
	o.wantSubmits(1, 1) // the second has to prove itself
	o.answer("k0002", OuterEnded)
	o.run(time.Minute)
	o.wantSubmits(1, 1, 1)
	o.answer("k0003", OuterEnded)
	o.run(24 * time.Hour)
	o.wantSubmits(1, 1, 1)
	if h := o.v.Providers[0].History; !h.Stopped || !strings.Contains(h.StopReason, "3 allocations") {
		t.Errorf("%+v", h)
	}
}

func TestFastDyingWorkerCounts(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 8, 1, time.Minute)}
	for i, key := range []string{"k0001", "k0002", "k0003"} {
		o.run(10 * time.Second)
		o.join(key, "n"+key, 1)
		o.now = o.now.Add(20 * time.Second)
		o.leave(key, 1)
		o.answer(key, OuterEnded)
		if h := o.v.Providers[0].History; h.EarlyDeaths != i+1 || len(h.ExcludedHosts(o.now)) != i+1 {
			t.Fatalf("%+v", h)
		}
	}
	if h := o.v.Providers[0].History; !h.Stopped {
		t.Errorf("%+v", h)
	}
	if got := o.v.Providers[0].History.ExcludedHosts(o.now.Add(25 * time.Hour)); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestNeverJoined(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 1, 1, time.Minute)}
	o.step()
	o.answer("k0001", OuterRunning)
	o.run(provider.DefaultJoinWithin)
	if len(o.cancels) != 0 {
		t.Fatalf("%+v", o.cancels)
	}
	o.run(5 * time.Second)
	a := o.v.Allocations["k0001"]
	if len(o.cancels) != 1 || a.Outcome != EarlyDeath || o.v.Providers[0].History.EarlyDeaths != 1 {
		t.Fatalf("%+v %+v", o.cancels, a)
	}
}

// TestUnseen checks that an allocation is not blamed for what happened while the
// provisioner did not look.
func TestUnseen(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 2, 1, time.Minute)}
	o.run(10 * time.Second)
	o.now = o.now.Add(time.Hour)
	o.v.SeePilots(nil, o.now)
	o.answer("k0001", OuterEnded)
	o.answer("k0002", OuterQueued)
	o.v.SeePilots(nil, o.now)
	o.answer("k0002", OuterEnded)
	if got := o.v.Allocations["k0001"].Outcome; got != Unseen {
		t.Errorf("the first: %s", got)
	}
	if got := o.v.Allocations["k0002"].Outcome; got != EarlyDeath || o.v.Providers[0].History.EarlyDeaths != 1 {
		t.Errorf("the second: %s", got)
	}
}

func TestStopCancelsQueued(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 2, 1, time.Minute)}
	o.run(10 * time.Second)
	o.join("k0001", "n1", 1)
	o.v.Stop("c", "by its user")
	o.run(10 * time.Minute)
	if len(o.cancels) != 1 || o.cancels[0].Key != "k0002" {
		t.Errorf("%+v", o.cancels)
	}
}

func TestRemovedProviderLeaves(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 2, 1, time.Minute)}
	o.run(10 * time.Second)
	o.join("k0001", "n1", 1)
	o.v.SetProviders(nil)
	o.step()
	if len(o.cancels) != 2 {
		t.Errorf("%+v", o.cancels)
	}
}

func TestSplitInOrder(t *testing.T) {
	first, second := cluster("first", 1), cluster("second", 1)
	o := newOuterSystem(t, first, second)
	o.demand = []Demand{tasks("1.h", 3, 1, time.Minute)}
	o.run(10 * time.Minute)
	by := map[string]int{}
	for _, d := range o.submits {
		by[d.Provider]++
	}
	if by["first"] != 2 || by["second"] != 1 {
		t.Errorf("%v", by)
	}
}

// TestOneThirdARound checks rule R5: of 30 allocations 10 are submitted in 30 s.
func TestOneThirdARound(t *testing.T) {
	s := cluster("c", 1)
	s.MaxPilots, s.MaxQueued = 100, 100
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 12, 1, time.Minute)}
	o.run(30 * time.Second)
	o.wantSubmits(1, 1, 1, 1)
	o.run(5 * time.Minute)
	if len(o.submits) != 12 {
		t.Errorf("%d submits", len(o.submits))
	}
}

func TestWait(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 1, 1, time.Minute).since(epoch)}
	if o.step(); !o.last.Next.Equal(epoch.Add(provider.DefaultWait)) {
		t.Errorf("next plan at %v", o.last.Next)
	}
	o.run(provider.DefaultWait)
	o.wantSubmits()
	o.run(5 * time.Second)
	o.wantSubmits(1)
}

func TestNodeHours(t *testing.T) {
	s := cluster("c", 1)
	s.MaxNodeHours, s.MaxQueued = 2.5, 10
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 5, 1, time.Minute)}
	o.run(time.Minute)
	o.wantSubmits(1, 1)
	if got := o.last.Decisions[0].Reason; !strings.Contains(got, "max_node_hours") {
		t.Error(got)
	}
	for _, key := range []string{"k0001", "k0002"} { // each ran for six minutes
		o.join(key, key, 1)
	}
	o.now = o.now.Add(6 * time.Minute)
	for _, key := range []string{"k0001", "k0002"} {
		o.leave(key, 1)
		o.answer(key, OuterEnded)
	}
	o.run(10 * time.Second)
	o.wantSubmits(1, 1, 1, 1)
	o.run(time.Hour)
	o.wantSubmits(1, 1, 1, 1)
}

func TestGangBesideSingles(t *testing.T) {
	s := cluster("c", 4)
	s.MaxQueued = 10
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 3, 1, time.Minute), tasks("2.h", 3, 3, time.Minute).inGangs(3)}
	o.run(time.Minute)
	o.wantSubmits(3) // each node has a core left
}
