package match

import (
	"testing"

	"github.com/roost-batch/roost/gpu"
)

// checkExplanation checks what is true of every explanation. Each machine is counted
// once, the brief form and the basis exist, and the start fits its certainty.
func checkExplanation(t testing.TB, e *WaitExplanation) {
	t.Helper()
	machines := 0
	for _, r := range e.Reasons {
		machines += r.Machines
	}
	if machines != e.Machines {
		t.Fatalf("the reasons are of %d machines, and there are %d: %+v", machines, e.Machines, e.Reasons)
	}
	if e.Brief == "" || e.Basis == "" || e.HigherAhead+e.OwnAhead > e.UnitsAhead ||
		e.Start.IsZero() != (e.Certainty == UnknownStart) {
		t.Fatalf("an explanation with holes: %+v", e)
	}
}

// checkPlan checks every plan: it must not grant more than is free or more than was
// wanted.
func checkPlan(t testing.TB, s *Snapshot, plan Plan) {
	t.Helper()
	free, left, lead := map[string]*naiveFree{}, map[*Request]int{}, map[*Request]*Request{}
	for _, m := range s.Machines {
		free[m.Name] = newNaiveFree(s, m)
	}
	for _, r := range s.Requests {
		left[r], lead[r] = r.Wanted, r
		for _, part := range r.Parts {
			lead[part] = r
		}
	}
	gone := map[string]bool{}
	for _, g := range plan.Grants {
		left[lead[g.Request]] -= g.Units
		if g.Victims != nil {
			checkVictims(t, &g, gone)
			continue
		}
		if g.Waiting {
			if g.Request.Class.AppClass != gpu.BatchClass || g.Machine.units.Queue(g.Unit).FreePlaces == 0 {
				t.Fatalf("%s: a place in a queue where there is none", g.Machine.Name)
			}
			continue
		}
		for range g.Units {
			if !free[g.Machine.Name].fits(g.Request.Class) {
				t.Fatalf("%s: more granted than is free", g.Machine.Name)
			}
			free[g.Machine.Name].take(g.Request.Class)
		}
	}
	for _, u := range plan.Unplaced {
		left[u.Request] -= u.Missing
	}
	for r, n := range left {
		if n != 0 {
			t.Fatalf("request %v: %d units neither placed nor reported", r.Key, n)
		}
	}
}
