package faults

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func testLimits() DrawLimits {
	return DrawLimits{
		Nodes:      NodeNames{[]string{"s1", "s2"}, []string{"m1", "m2", "m3"}, []string{"n1", "n2", "n3"}},
		Failpoints: func(node string) []string { return []string{node + ".before", node + ".after"} },
		From:       time.Second, Until: 5 * time.Minute, MaxIncidents: 40,
	}
}

// TestDraw checks that a seed always draws the same faults, and another seed others.
// Faults must be in order, end in time, and affect different nodes that exist.
func TestDraw(t *testing.T) {
	w := testLimits()
	seen, nodes := map[InjectionKind]int{}, w.Nodes.all()
	points, oneWay, few, many := 0, 0, 0, 0
	for seed := range uint64(400) {
		all := DrawSchedule(NewRand(seed), w)
		if again := DrawSchedule(NewRand(seed), w); !reflect.DeepEqual(all, again) {
			t.Fatalf("seed %d draws %v, and %v", seed, all, again)
		}
		if len(all) < 3 {
			few++
		} else if len(all) > 30 {
			many++
		}
		for i, f := range all {
			seen[f.Kind]++
			if i > 0 && f.At < all[i-1].At || f.At < w.From || f.End() > w.Until || f.Duration < 0 {
				t.Errorf("seed %d: %+v", seed, f)
			}
			between := f.Kind == Partition || f.Kind == SlowLink || f.Kind == BreakSessions || f.Kind == TakeAddress
			if !slices.Contains(nodes, f.Node) || between != (f.Peer != "") ||
				between && (f.Node == f.Peer || !slices.Contains(nodes, f.Peer)) {
				t.Errorf("seed %d: %+v", seed, f)
			}
			if f.Failpoint != "" {
				points++
			}
			back := func(g Fault) bool {
				return g.Kind == Partition && g.Node == f.Peer && g.Peer == f.Node && g.At == f.At
			}
			if f.Kind == Partition && !slices.ContainsFunc(all, back) {
				oneWay++
			}
			if strings.Contains(f.String(), "kind(") {
				t.Errorf("%+v: %v", f, f)
			}
		}
	}
	for _, k := range AllKinds() {
		if seen[k] < 20 {
			t.Errorf("%v are drawn %d times", k, seen[k])
		}
	}
	if points < 50 || oneWay < 50 || few < 20 || many < 20 {
		t.Errorf("%d faults at points, %d cuts one way, %d schedules of one or two faults, %d of more than 30", points,
			oneWay, few, many)
	}
}

// TestDrawKinds checks that only the requested kinds, disks and owners are drawn.
func TestDrawKinds(t *testing.T) {
	w := testLimits()
	w.Kinds, w.Disks, w.OwnedMachines = []InjectionKind{FullDisk, ClockStep, OwnerComes}, []string{"s1"}, []string{"m2"}
	for seed := range uint64(50) {
		for _, f := range DrawSchedule(NewRand(seed), w) {
			if f.Kind != ClockStep && (f.Kind != FullDisk || f.Node != "s1") &&
				(f.Kind != OwnerComes || f.Node != "m2") {
				t.Errorf("seed %d: %v", seed, f)
			}
		}
	}
}

// TestMinimize checks that the minimal set is found at any place in the list. No element
// of the result can be left out.
func TestMinimize(t *testing.T) {
	r := NewRand(1)
	for range 300 {
		n := r.Between(1, 60)
		all := make([]int, n)
		needed := map[int]bool{}
		for i := range all {
			if all[i] = i; r.OneIn(12) {
				needed[i] = true
			}
		}
		tried := 0
		fails := func(some []int) bool {
			tried++
			found := 0
			for _, i := range some {
				if needed[i] {
					found++
				}
			}
			return found == len(needed)
		}
		got := Minimize(all, fails, func() bool { return false })
		if len(got) != len(needed) || !slices.IsSorted(got) || !fails(got) {
			t.Fatalf("of %d, %v are needed, and it finds %v", n, needed, got)
		}
		if most := 4 * (n + 1) * (len(needed) + 1); tried > most {
			t.Errorf("of %d with %d needed it took %d tries", n, len(needed), tried)
		}
	}
	stop := 0
	got := Minimize(make([]int, 1000), func([]int) bool { return false }, func() bool { stop++; return stop > 5 })
	if len(got) != 1000 || stop > 8 {
		t.Errorf("it went on for %d tries, and left %d", stop, len(got))
	}
}

// toyFails models a lock with a lease that a crash and a partition together let two nodes
// hold. Other faults do no harm, and a minimal amount of each of the two suffices.
func toyFails(all []Fault) bool {
	crashed := false
	for _, f := range all {
		if f.Kind == Crash && f.Node == "s1" {
			crashed = true
		}
		if f.Kind == Partition && crashed && f.Duration >= time.Second {
			return true
		}
	}
	return false
}

// TestMinimizeAndShorten checks that a long schedule is reduced to the two harmful
// faults, each as short as possible.
func TestMinimizeAndShorten(t *testing.T) {
	found := 0
	for seed := range uint64(1000) {
		all := DrawSchedule(NewRand(seed), testLimits())
		if !toyFails(all) {
			continue
		}
		found++
		all = Minimize(all, toyFails, func() bool { return false })
		all = ShortenFaults(all, toyFails, func() bool { return false })
		if len(all) != 2 || all[0].Kind != Crash || all[1].Kind != Partition || all[0].Duration > minDuration ||
			all[1].Duration > 2*time.Second {
			t.Errorf("seed %d: %v", seed, all)
		}
	}
	if found < 10 {
		t.Errorf("only %d seeds do harm", found)
	}
}

func TestString(t *testing.T) {
	for want, f := range map[string]Fault{
		"s1 dies, and starts again 2s later": {Kind: Crash, Node: "s1", Duration: 2 * time.Second},
		"s1 dies when it passes schedd.fsync.after for the 3rd time from now on, and starts again 2s later": {
			Kind: Crash, Node: "s1", Duration: 2 * time.Second, Failpoint: "schedd.fsync.after", N: 3,
		},
		"nothing comes through from m1 to s1 for 250ms": {
			Kind: Partition, Node: "m1", Peer: "s1", Duration: 250 * time.Millisecond,
		},
		"the wall clock of m1 is put back by 1h0m0s": {
			Kind: ClockStep, Node: "m1", Amount: -time.Hour,
		},
		"manager1 dies, a bit of what it has on disk is another one, and it starts again 2s later": {
			Kind: BitFlip, Node: "manager1", Duration: 2 * time.Second, N: 7,
		},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fmt.Sprintln(ordinal(1), ordinal(2), ordinal(11), ordinal(13), ordinal(22),
		ordinal(103)); got != "1st 2nd 11th 13th 22nd 103rd\n" {
		t.Errorf("%s", got)
	}
}

// TestSeed checks that a seed gives the same numbers as ever, because known failures are
// recorded as seeds.
func TestSeed(t *testing.T) {
	r := NewRand(1234567)
	if a, b := r.Uint64(), r.Split().Uint64(); a != 6457827717110365317 || b != 952087129823636507 {
		t.Errorf("got %d and %d", a, b)
	}
}
