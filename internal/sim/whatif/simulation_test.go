package whatif

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
)

// TestSimulationRandom runs random cells to their ends and checks invariants. Every task
// starts once, plus once for each eviction. No machine is overcommitted. What ends
// returns its resources. The same cell gives the same simulation, and its checkpoint is
// not modified.
func TestSimulationRandom(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		x := newScriptRunner(t)
		do := func(format string, args ...any) { x.runLine(fmt.Sprintf(format, args...)) }
		machines := 1 + rng.IntN(4)
		for i := range machines {
			do("machine m%d cpus=4 gpus=%d", i, rng.IntN(2))
			for k := range rng.IntN(3) {
				do("runs m%d %s cpus=1 ends=%d band=%s job=%d[%d].s", i, []string{"ann", "bob"}[rng.IntN(2)],
					1+rng.IntN(300), []string{"free", "batch"}[rng.IntN(2)], 50+i, k)
			}
		}
		wanted := 0
		for id := range 1 + rng.IntN(5) {
			n, gang := 1+rng.IntN(8), 0
			if rng.IntN(4) == 0 {
				gang, n = 2, 4
			}
			wanted += n
			do("request %d owner=%s cpus=%d wanted=%d walltime=%d band=%s gang=%d", id+1,
				[]string{"ann", "bob", "eve"}[rng.IntN(3)], 1+rng.IntN(2), n, 1+rng.IntN(200),
				[]string{"free", "batch", "production"}[rng.IntN(3)], gang)
		}
		digest := uint64(0)
		for round := range 2 {
			p, err := NewSimulation(x.cell, ByWalltime)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Run(startTime+1_000_000, func() bool { p.checkCapacity(t, seed); return false }); err != nil {
				t.Fatal(err)
			}
			started, again := 0, 0
			for _, s := range p.Starts {
				started += s.Units
			}
			for _, e := range p.Evictions {
				// it started in the simulation; the requests of the others are unknown
				if e.Claim.ID > 1<<62 {
					again++
				}
			}
			if p.WaitingUnits() != 0 || started != wanted+again {
				t.Fatalf("seed %d: %d started of %d wanted and %d that had to start again, %d wait", seed, started,
					wanted, again, p.WaitingUnits())
			}
			p.now += 1_000_000
			p.endDueTasks()
			for _, m := range p.Machines {
				if len(m.Claims) > 0 || m.Free.CPU != 4000 {
					t.Fatalf("seed %d: when all is over %v of %s is free, and %d claims are there", seed, m.Free,
						m.Name, len(m.Claims))
				}
			}
			for who, held := range p.ClaimHolders {
				if held != (roost.Resources{}) {
					t.Fatalf("seed %d: when all is over %v holds %v", seed, who, held)
				}
			}
			if round == 1 && digest != p.Digest() {
				t.Fatalf("seed %d: played again it is another", seed)
			}
			digest = p.Digest()
		}
	}
}

// checkCapacity checks that no machine is overcommitted.
func (p *Simulation) checkCapacity(t *testing.T, seed uint64) {
	for _, m := range p.Machines {
		sum := m.Free
		for i := range m.Claims {
			sum = sum.Add(m.Claims[i].Resources)
		}
		if sum.CPU != m.Total.CPU || sum.Memory != m.Total.Memory || m.Free.IsNegative() {
			t.Fatalf("seed %d: of %s %v is free, and with what claims hold it is %v", seed, m.Name, m.Free, sum)
		}
	}
}

// runLine runs a line of a script.
func (x *scriptRunner) runLine(text string) {
	words := strings.Fields(text)
	x.report(script.ScriptCommand{Command: words[0], Args: words[1:]})
}

// BenchmarkPlay simulates a cell of 500 machines with 5,000 tasks of ten kinds.
func BenchmarkPlay(b *testing.B) {
	x := &scriptRunner{cell: newScriptRunner(&testing.T{}).cell}
	for i := range 500 {
		x.runLine(fmt.Sprintf("machine m%03d cpus=16", i))
	}
	for id := range 10 {
		x.runLine(fmt.Sprintf("request %d owner=u%d cpus=%d wanted=1000 walltime=%d", id+1, id%3, 1+id%4, 100*(1+id)))
	}
	for b.Loop() {
		p, err := NewSimulation(x.cell, ByWalltime)
		if err == nil {
			err = p.Run(startTime+1_000_000, func() bool { return false })
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(p.Events), "events/op")
	}
}
