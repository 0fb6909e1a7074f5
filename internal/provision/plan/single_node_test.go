package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/provision/provider"
)

// TestGangNeedsNodes checks that a provider with nodes one by one is not asked for a gang
// that needs two. The reason is shown.
func TestGangNeedsNodes(t *testing.T) {
	s := cluster("c", 4)
	s.Kind = provider.GridEngine
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 2, 4, time.Minute).inGangs(2)}
	o.run(5 * time.Minute)
	o.wantSubmits()
	if u := o.last.Unmet; len(u) != 1 || !strings.Contains(u[0].Reason, "an allocation of kind gridengine has one") {
		t.Errorf("%+v", u)
	}
	o.demand = []Demand{tasks("2.h", 2, 2, time.Minute).inGangs(2)} // both fit on one
	o.run(5 * time.Minute)
	o.wantSubmits(1)
}

// TestShortLifeInOrder checks that an allocation which ended with exit status 0 was of
// use, however soon. Its pilot had nothing more to do.
func TestShortLifeInOrder(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, succeeded := range []bool{true, false} {
		v := NewProvisioning()
		v.SetProviders([]provider.Settings{cluster("c", 4).WithDefaults()})
		v.SeePilots(nil, now)
		v.Begin("k", Decision{Provider: "c", Nodes: 1, Walltime: time.Hour}, now)
		v.SubmitTaken("k", "7", now)
		v.SeePilots(nil, now.Add(time.Minute))
		ended := OuterStatus{ID: "7", State: OuterEnded, Succeeded: succeeded}
		v.StatusAnswered("c", []string{"k"}, map[string]OuterStatus{"7": ended}, now.Add(time.Minute))
		want := Worked
		if !succeeded {
			want = EarlyDeath
		}
		if a := v.Allocations["k"]; a.Outcome != want || (v.Providers[0].History.EarlyDeaths > 0) == succeeded {
			t.Errorf("succeeded %v: %+v", succeeded, a)
		}
	}
}

// TestPilotOfAnyLength checks that a pilot whose ad has no end is counted all the same.
func TestPilotOfAnyLength(t *testing.T) {
	now := epoch
	v := NewProvisioning()
	s := cluster("c", 4).WithDefaults()
	s.WithoutWalltime = true
	v.SetProviders([]provider.Settings{s})
	v.Begin("k", Decision{Provider: "c", Nodes: 1, Walltime: time.Hour}, now)
	v.SubmitTaken("k", "7", now)
	node := v.Providers[0].nodeAd()
	node.SetString("Name", "p1")
	pilots := []Pilot{{Name: "p1", Key: "k", Ad: node}}
	v.SeePilots(pilots, now)
	if r := v.Plan(now.Add(time.Minute), []Demand{tasks("1.h", 2, 1, 0)}, pilots); len(r.Submits()) > 0 {
		t.Errorf("it asks for another: %+v", r.Decisions)
	}
	if r := v.Plan(now.Add(time.Minute), []Demand{tasks("1.h", 2, 1, 0)}, nil); len(r.Submits()) == 0 {
		t.Errorf("without the pilot nothing is asked for: %+v", r.Decisions)
	}
}
