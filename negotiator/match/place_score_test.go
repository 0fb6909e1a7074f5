package match

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestScores checks where each score places one task. One machine is almost full, one is
// half full, one has free cores and little memory, and one is empty.
func TestScores(t *testing.T) {
	total := roost.Resources{CPU: 8000, Memory: 16 * roost.GiB, Disk: roost.TiB}
	var machines []*Machine
	for i, free := range []roost.Resources{{CPU: 2000, Memory: 4 * roost.GiB}, {CPU: 4000, Memory: 8 * roost.GiB},
		{CPU: 7000, Memory: roost.GiB}, {CPU: 8000, Memory: 16 * roost.GiB}} {
		name := []string{"a-full", "b-half", "c-lopsided", "d-empty"}[i]
		free.Disk = total.Disk
		machines = append(machines, NewMachine(name, 1, 1, machineAd(t, name, total, free, "")))
	}
	for by, want := range map[ScorePolicy]string{Hybrid: "c-lopsided", BestFit: "a-full", WorstFit: "d-empty",
		Fragmentation: "c-lopsided"} {
		class, err := NewClass("", fairshare.Submitter{Owner: "ann"}, roost.BatchBand,
			roost.Resources{CPU: 2000, Memory: roost.GiB})
		if err != nil {
			t.Fatal(err)
		}
		s := newMatcherCopy(&Snapshot{Machines: machines,
			Requests: []*Request{{Key: RequestKey{"s", 1}, Wanted: 1, Class: class}}, Score: by})
		if plan := NewMatcher().Plan(s); len(plan.Grants) != 1 || plan.Grants[0].Machine.Name != want {
			t.Errorf("%v: %s, want %s", by, grantsText(plan.Grants), want)
		}
	}
}

// TestWorstFitSpreads checks that worst fit places each unit of a request on a machine of
// its own.
func TestWorstFitSpreads(t *testing.T) {
	total := roost.Resources{CPU: 8000, Memory: 16 * roost.GiB, Disk: roost.TiB}
	s := &Snapshot{Score: WorstFit}
	for i := range 4 {
		name := fmt.Sprint("m", i)
		s.Machines = append(s.Machines, NewMachine(name, 1, 1, machineAd(t, name, total, total, "")))
	}
	class, err := NewClass("", fairshare.Submitter{Owner: "ann"}, roost.BatchBand,
		roost.Resources{CPU: 1000, Memory: roost.GiB})
	if err != nil {
		t.Fatal(err)
	}
	s.Requests = []*Request{{Key: RequestKey{"s", 1}, Wanted: 8, Class: class}}
	on := map[string]int{}
	for _, g := range NewMatcher().Plan(s).Grants {
		on[g.Machine.Name] += g.Units
	}
	for name, n := range on {
		if n != 2 || len(on) != 4 {
			t.Errorf("%d units on %s, want 2 on each of four", n, name)
		}
	}
}

func TestParseScore(t *testing.T) {
	for _, name := range scoreNames() {
		if s, err := ParseScore(name); err != nil || s.String() != name {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if s, err := ParseScore(""); s != Hybrid || err != nil {
		t.Errorf("none: %v, %v", s, err)
	}
	if _, err := ParseScore("bestfit"); !errors.Is(err, roost.Invalid) ||
		!strings.Contains(err.Error(), "use hybrid, best-fit") {
		t.Errorf("bestfit: %v", err)
	}
}

// TestOnlinePlacement checks that units that come one by one, in a plan's own order, are
// placed as in the plan.
func TestOnlinePlacement(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := randomCell(t, rng)
		s.Score, s.Groups, s.Limits = ScorePolicy(seed%4), nil, nil
		for _, r := range s.Requests {
			r.RunLimits = nil
			who := s.Shares[r.Submitter]
			who.Ceiling = 0
			s.Shares[r.Submitter] = who
		}
		one := s.Requests[:min(len(s.Requests), 1)] // with several requests the plan lets submitters take turns
		s.Requests = one
		var got, want []string
		for _, g := range NewMatcher().Plan(s).Grants {
			want = append(want, slices.Repeat([]string{g.Machine.Name}, g.Units)...)
		}
		if s = newMatcherCopy(s); len(s.Requests) == 0 || s.Requests[0].Class.Limits != nil {
			continue
		}
		wanted := s.Requests[0].Wanted
		a := NewMatcher().NewOnlinePlacement(s)
		for range wanted {
			m, on, ok := a.Place(s.Requests[0])
			if !ok {
				break
			}
			if f := m.units; f != nil && m.freeByUnit && !f.CanTake(on) {
				t.Fatalf("seed %d: %+v is more than %s has", seed, on, m.Name)
			}
			got = append(got, m.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, %v: got %v, want %v", seed, s.Score, got, want)
		}
	}
}
