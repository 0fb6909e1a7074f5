package fuzz

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
)

// TestSeeds checks that the first seeds have no violations and replay identically.
// ROOST_SEEDS sets their number, and ROOST_FIRST_SEED the first one; make faults runs ten
// thousand.
func TestSeeds(t *testing.T) {
	seeds, first := 50, uint64(0)
	if n, err := strconv.Atoi(os.Getenv("ROOST_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("ROOST_FIRST_SEED"), 10, 64); err == nil {
		first = n
	}
	var all RunStats
	for i := range uint64(seeds) {
		seed := first + i
		c := DrawCase(seed, DefaultSize())
		play := RunCase
		if seed%10 == 0 {
			play = RunTwice
		}
		o := play(c)
		all.Add(seed, o)
		if len(o.Violations) > 0 {
			c, o := Minimize(c, o, play, 300)
			t.Fatalf("seed %d:\n%s", seed, Describe(c, o))
		}
	}
	if all.Tasks < 3*seeds || all.FaultCount() < 3*seeds {
		t.Errorf("%d seeds had %d tasks and %d faults: that says little", seeds, all.Tasks, all.FaultCount())
	}
	t.Logf("%d seeds, %d events, %d tasks, %d faults", seeds, all.Events, all.Tasks, all.FaultCount())
}

// TestSeed minimizes and describes the seed that ROOST_SEED names. A core that panics is
// not caught.
func TestSeed(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("ROOST_SEED"), 10, 64)
	if err != nil {
		t.Skip("ROOST_SEED names no seed")
	}
	c := DrawCase(seed, DefaultSize())
	if o := RunCase(c); len(o.Violations) > 0 {
		c, o = Minimize(c, o, RunCase, 2000)
		t.Errorf("seed %d:\n%s", seed, Describe(c, o))
	}
	runCase(c, false)
}

// TestDraw checks that a seed always draws the same case, and that each case can be run.
func TestDraw(t *testing.T) {
	owners, guards := 0, 0
	for seed := range uint64(300) {
		c := DrawCase(seed, DefaultSize())
		if again := DrawCase(seed, DefaultSize()); !reflect.DeepEqual(c, again) {
			t.Fatalf("seed %d draws %+v, and %+v", seed, c, again)
		}
		if len(c.Jobs) == 0 || len(c.Machines) == 0 || c.RunEnd <= c.FaultsEnd {
			t.Errorf("seed %d: %+v", seed, c)
		}
		for _, f := range c.Faults {
			if f.Kind == faults.OwnerComes || f.Kind == faults.GuardDies {
				if owners++; f.Kind == faults.GuardDies {
					guards++
				}
				if !slices.Contains(c.ownedMachines(), f.Node) {
					t.Errorf("seed %d: %v, which has none", seed, f)
				}
			}
		}
		for i := range c.Jobs {
			j, fits := &c.Jobs[i], false
			for k := range c.Machines {
				fits = fits || j.resources().FitsIn(c.Machines[k].resources())
			}
			if !fits || j.Tasks < 1 || j.Schedd >= c.Schedds || j.At > c.FaultsEnd {
				t.Errorf("seed %d: %+v", seed, j)
			}
			for _, a := range j.Actions {
				if a.Delay < 0 {
					t.Errorf("seed %d: %+v", seed, j)
				}
			}
		}
	}
	if owners < 200 || guards < 100 {
		t.Errorf("owners come %d times, and their guards die %d times", owners-guards, guards)
	}
}

// TestDrawWithoutOwners checks that a pool without desktops has no visits of owners,
// whatever kinds are requested.
func TestDrawWithoutOwners(t *testing.T) {
	s, none := DefaultSize(), 0
	s.Kinds = []faults.InjectionKind{faults.OwnerComes, faults.GuardDies}
	for seed := range uint64(100) {
		if c := DrawCase(seed, s); len(c.ownedMachines()) == 0 {
			if none++; len(c.Faults) > 0 {
				t.Errorf("seed %d: %v", seed, c.Faults)
			}
		}
	}
	if none < 10 {
		t.Errorf("only %d seeds have no desktop", none)
	}
}

// toyRun violates P4 if a machine is cut off while job 3 has several tasks. It violates
// P5 if there are more than ten faults.
func toyRun(c *PoolCase) *RunOutcome {
	o := &RunOutcome{}
	if len(c.Faults) > 10 {
		o.Violations = append(o.Violations, audit.Violation{Guarantee: 5})
	}
	for i := range c.Jobs {
		for _, f := range c.Faults {
			if c.Jobs[i].Number == 3 && c.Jobs[i].Tasks > 1 && f.Kind == faults.Partition &&
				strings.HasPrefix(f.Node, machinePrefix) {
				o.Violations = append(o.Violations, audit.Violation{Guarantee: 4, Description: "it is toyed with",
					History: []audit.Event{{At: time.Second, Type: audit.FaultsEnded}}})
				return o
			}
		}
	}
	return o
}

// TestMinimize checks that a minimized case violates the same guarantee and has nothing
// superfluous.
func TestMinimize(t *testing.T) {
	found := 0
	for seed := range uint64(4000) {
		c := DrawCase(seed, DefaultSize())
		o := toyRun(c)
		if len(o.Violations) == 0 || o.Violations[0].Guarantee != 4 {
			continue
		}
		found++
		c, o = Minimize(c, o, toyRun, 3000)
		if len(c.Faults) != 1 || len(c.Jobs) != 1 || len(c.Machines) > 3 || len(faultsOnKnown(c)) != 1 ||
			c.Jobs[0].Tasks != 2 || len(c.Jobs[0].Actions) > 0 {
			t.Fatalf("seed %d is shortened to %+v", seed, c)
		}
		if report := Describe(c, o); !strings.Contains(report, "FAULT nothing comes through from "+machinePrefix) ||
			!strings.Contains(report, "So P4 is broken at 0.000s: it is toyed with.") {
			t.Fatalf("seed %d:\n%s", seed, report)
		}
	}
	if found < 20 {
		t.Errorf("only %d seeds break it", found)
	}
}
