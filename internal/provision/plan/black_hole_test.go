package plan

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// fail has the pool drain the pilots of an allocation.
func (o *outerSystem) fail(key, why string) {
	for i := range o.pilots {
		if o.pilots[i].Key == key {
			o.pilots[i].Failing = why
		}
	}
	o.v.SeePilots(o.pilots, o.now)
}

// TestBlackHole checks that an allocation ends on whose machine tasks fail that go well
// elsewhere. The machine gets no pilots for a day. After three the provider is stopped.
func TestBlackHole(t *testing.T) {
	o := newOuterSystem(t, cluster("c", 1))
	o.demand = []Demand{tasks("1.h", 8, 1, time.Minute)}
	for i, key := range []string{"k0001", "k0002", "k0003"} {
		o.run(10 * time.Second)
		o.join(key, "n"+key, 1)
		o.run(10 * time.Minute)
		if a := o.v.Allocations[key]; !a.CancelAt.IsZero() || len(o.v.Providers[0].History.ExcludedHosts(o.now)) != i {
			t.Fatalf("before tasks fail: %+v", a)
		}
		o.fail(key, "no space left")
		o.step()
		h := o.v.Providers[0].History
		if a := o.v.Allocations[key]; a.CancelAt.IsZero() || a.Outcome != EarlyDeath ||
			!strings.Contains(a.Reason, "n"+key+": no space left") {
			t.Fatalf("%+v", a)
		}
		if !slices.Contains(h.ExcludedHosts(o.now), "n"+key) || len(h.ExcludedHosts(o.now)) != i+1 {
			t.Errorf("excluded are %v", h.ExcludedHosts(o.now))
		}
		o.leave(key, 1)
		o.answer(key, OuterEnded)
	}
	if h := o.v.Providers[0].History; !h.Stopped || !strings.Contains(h.StopReason, "no space left") {
		t.Errorf("%+v", h)
	}
}

// TestBlackHoleOfMany checks that an allocation of several nodes goes on with the others.
func TestBlackHoleOfMany(t *testing.T) {
	s := cluster("c", 1)
	s.NodesEach = 2
	o := newOuterSystem(t, s)
	o.demand = []Demand{tasks("1.h", 8, 1, time.Minute)}
	o.run(10 * time.Second)
	o.join("k0001", "n1", 1)
	o.join("k0001", "n2", 1)
	o.pilots[0].Failing = "broken"
	o.v.SeePilots(o.pilots, o.now)
	o.run(time.Minute)
	a, h := o.v.Allocations["k0001"], o.v.Providers[0].History
	if !a.CancelAt.IsZero() || !slices.Equal(h.ExcludedHosts(o.now), []string{"n1"}) || h.EarlyDeaths != 0 {
		t.Errorf("%+v; excluded are %v", a, h.ExcludedHosts(o.now))
	}
	o.fail("k0001", "broken")
	o.step()
	if a.CancelAt.IsZero() || len(o.v.Providers[0].History.ExcludedHosts(o.now)) != 2 {
		t.Errorf("%+v", a)
	}
}
