package storm

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/fault"
)

// Some seeds are clean, and play again as they did. ROOST_SEEDS says how many; make faults plays ten thousand.
func TestSeeds(t *testing.T) {
	seeds := 50
	if n, err := strconv.Atoi(os.Getenv("ROOST_SEEDS")); err == nil {
		seeds = n
	}
	var all Tally
	for seed := range uint64(seeds) {
		c := Draw(seed, DefaultSize())
		play := Play
		if seed%10 == 0 {
			play = Twice
		}
		o := play(c)
		all.Add(seed, o)
		if len(o.Breaches) > 0 {
			c, o := Shrink(c, o, play, 300)
			t.Fatalf("seed %d:\n%s", seed, Story(c, o))
		}
	}
	if all.Tasks < 3*seeds || all.Faults() < 3*seeds {
		t.Errorf("%d seeds had %d tasks and %d faults: that says little", seeds, all.Tasks, all.Faults())
	}
	t.Logf("%d seeds, %d events, %d tasks, %d faults", seeds, all.Events, all.Tasks, all.Faults())
}

// ROOST_SEED names a seed to be looked at: it is shortened and told, and a core that panics is let do so.
func TestSeed(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("ROOST_SEED"), 10, 64)
	if err != nil {
		t.Skip("ROOST_SEED names no seed")
	}
	c := Draw(seed, DefaultSize())
	if o := Play(c); len(o.Breaches) > 0 {
		c, o = Shrink(c, o, Play, 2000)
		t.Errorf("seed %d:\n%s", seed, Story(c, o))
	}
	played(c, false)
}

// The same seed draws the same case, and each is one that can be played.
func TestDraw(t *testing.T) {
	owners, guards := 0, 0
	for seed := range uint64(300) {
		c := Draw(seed, DefaultSize())
		if again := Draw(seed, DefaultSize()); !reflect.DeepEqual(c, again) {
			t.Fatalf("seed %d draws %+v, and %+v", seed, c, again)
		}
		if len(c.Jobs) == 0 || len(c.Machines) == 0 || c.Until <= c.Calm {
			t.Errorf("seed %d: %+v", seed, c)
		}
		for _, f := range c.Faults {
			if f.Kind == fault.OwnerComes || f.Kind == fault.GuardDies {
				if owners++; f.Kind == fault.GuardDies {
					guards++
				}
				if !slices.Contains(c.desks(), f.Node) {
					t.Errorf("seed %d: %v, which has none", seed, f)
				}
			}
		}
		for i := range c.Jobs {
			j, fits := &c.Jobs[i], false
			for k := range c.Machines {
				fits = fits || j.resources().Fits(c.Machines[k].resources())
			}
			if !fits || j.Tasks < 1 || j.Schedd >= c.Schedds || j.At > c.Calm {
				t.Errorf("seed %d: %+v", seed, j)
			}
			for _, a := range j.Acts {
				if a.After < 0 {
					t.Errorf("seed %d: %+v", seed, j)
				}
			}
		}
	}
	if owners < 200 || guards < 100 {
		t.Errorf("owners come %d times, and their guards die %d times", owners-guards, guards)
	}
}

// Of a pool without desktops no owner comes, whatever is asked for.
func TestDrawWithoutDesks(t *testing.T) {
	s, none := DefaultSize(), 0
	s.Kinds = []fault.Kind{fault.OwnerComes, fault.GuardDies}
	for seed := range uint64(100) {
		if c := Draw(seed, s); len(c.desks()) == 0 {
			if none++; len(c.Faults) > 0 {
				t.Errorf("seed %d: %v", seed, c.Faults)
			}
		}
	}
	if none < 10 {
		t.Errorf("only %d seeds have no desktop", none)
	}
}

// toy breaks P4 if the second machine is cut off while job 3 has two tasks, and P5 if there are more than ten faults.
func toy(c *Case) *Outcome {
	o := &Outcome{}
	if len(c.Faults) > 10 {
		o.Breaches = append(o.Breaches, audit.Breach{Promise: 5})
	}
	for i := range c.Jobs {
		for _, f := range c.Faults {
			if c.Jobs[i].Number == 3 && c.Jobs[i].Tasks > 1 && f.Kind == fault.Cut && strings.HasPrefix(f.Node, machinePrefix) {
				o.Breaches = append(o.Breaches, audit.Breach{Promise: 4, Text: "it is toyed with", History: []audit.Seen{{At: time.Second, What: audit.Calm}}})
				return o
			}
		}
	}
	return o
}

// What does not matter is left out, and the promise that is broken stays the same.
func TestShrink(t *testing.T) {
	found := 0
	for seed := range uint64(4000) {
		c := Draw(seed, DefaultSize())
		o := toy(c)
		if len(o.Breaches) == 0 || o.Breaches[0].Promise != 4 {
			continue
		}
		found++
		c, o = Shrink(c, o, toy, 3000)
		if len(c.Faults) != 1 || len(c.Jobs) != 1 || len(c.Machines) > 3 || len(known(c)) != 1 || c.Jobs[0].Tasks != 2 || len(c.Jobs[0].Acts) > 0 {
			t.Fatalf("seed %d is shortened to %+v", seed, c)
		}
		if story := Story(c, o); !strings.Contains(story, "FAULT nothing comes through from "+machinePrefix) || !strings.Contains(story, "So P4 is broken at 0.000s: it is toyed with.") {
			t.Fatalf("seed %d:\n%s", seed, story)
		}
	}
	if found < 20 {
		t.Errorf("only %d seeds break it", found)
	}
}
