package pool

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// smallPool draws a pool from a seed. It has a few machines, schedds and managers, and
// jobs of several sizes and lengths in the first minute.
func smallPool(seed uint64, jobs int) SimulationConfig {
	r := eventloop.NewRand(seed, 99)
	c := SimulationConfig{Seed: seed, Managers: 1 + 2*r.Below(2), Schedds: 1 + r.Below(3), SelfCheck: true}
	for range 2 + r.Below(5) {
		c.Machines = append(c.Machines, MachineConfig{
			Resources: roost.Resources{CPU: roost.MilliCPU(2+2*r.Below(4)) * 1000, Memory: 16 << 30, Disk: 100 << 30},
		})
	}
	for range jobs {
		ad := classad.New()
		ad.SetInt(roost.AttrRequestCpus, int64(1+r.Below(2)))
		ad.SetInt(roost.AttrRequestMemory, 512)
		j := JobConfig{
			At: r.Between(0, time.Minute), Schedd: r.Below(c.Schedds), Owner: fmt.Sprintf("user%d", r.Below(3)),
			Spec:   queue.SubmitSpec{Ad: ad, Count: 1 + r.Below(4)},
			Output: r.Chance(0.3),
		}
		for range j.Spec.Count {
			j.Runtimes = append(j.Runtimes, r.LogNormal(10*time.Second, 1.5))
			j.ExitCodes = append(j.ExitCodes, int32(r.Below(10)/9))
		}
		if r.Chance(0.2) {
			j.ResubmitAfter = r.Between(0, time.Minute)
		}
		c.Jobs = append(c.Jobs, j)
	}
	return c
}

// playPool runs a pool until all jobs have ended, and checks the guarantees.
func playPool(t *testing.T, c SimulationConfig, within time.Duration) *Pool {
	t.Helper()
	a := audit.New(audit.DefaultRules())
	c.Observe = a.Observe
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if !p.RunToEnd(within) {
		t.Fatalf("seed %d: %d jobs are not over after %v", c.Seed, p.unfinished, p.Now())
	}
	p.RunUntil(p.Now() + time.Minute)
	a.Finish(p.Now())
	for _, b := range a.Violations() {
		t.Errorf("seed %d: %v", c.Seed, b.String())
	}
	if all := p.Refused(); len(all) > 0 {
		t.Errorf("seed %d: refused: %v", c.Seed, all)
	}
	return p
}

// TestFaultless checks runs without faults. All jobs end, no guarantee is violated, and a
// seed gives the same run, whether or not ads are parsed from text.
func TestFaultless(t *testing.T) {
	for seed := range uint64(3) {
		c := smallPool(seed, 40)
		spelt := c
		spelt.AdsAsText = true
		p, again := playPool(t, c, 24*time.Hour), playPool(t, spelt, 24*time.Hour)
		if p.Digest() != again.Digest() || p.Events() != again.Events() {
			t.Errorf("seed %d: %d events with the digest %016x, and then %d with %016x", seed, p.Events(), p.Digest(),
				again.Events(), again.Digest())
		}
		other := smallPool(seed, 40)
		other.Seed += 1000
		if o := playPool(t, other, 24*time.Hour); o.Digest() == p.Digest() {
			t.Errorf("seed %d: another seed is the same run", seed)
		}
	}
}

// TestFaults checks runs with crashes, reboots, suspends, pauses, partitions and full
// disks. When the faults are over, all jobs end, and no guarantee was violated. For more
// seeds: ROOST_POOL_SEEDS=1000 go test ./internal/sim/pool -run Faults.
func TestFaults(t *testing.T) {
	seeds, err := strconv.ParseUint(cmp.Or(os.Getenv("ROOST_POOL_SEEDS"), "4"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range seeds {
		c := smallPool(seed, 20)
		run := func() (*Pool, *audit.Auditor) {
			a := audit.New(audit.DefaultRules())
			c.Observe = a.Observe
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			r := eventloop.NewRand(seed, 5)
			managers, schedds, machines := p.Nodes()
			all := append(append(managers, schedds...), machines...)
			for range 30 {
				one, other := all[r.Below(len(all))], all[r.Below(len(all))]
				d, what := r.Between(0, 20*time.Second), r.Below(10)
				p.CallAt(r.Between(0, 90*time.Second), func() { injectFault(p, what, one, other, d) })
			}
			if !p.RunToEnd(24 * time.Hour) {
				t.Fatalf("seed %d: %d jobs are not over after %v", seed, p.unfinished, p.Now())
			}
			return p, a
		}
		p, a := run()
		for _, b := range a.Violations() {
			t.Errorf("seed %d: %v", seed, b.String())
		}
		if again, _ := run(); again.Digest() != p.Digest() {
			t.Errorf("seed %d: the digest is %016x, and then %016x", seed, p.Digest(), again.Digest())
		}
	}
}

// TestQuiet checks that a quiet pool has the same results, and simulates eventless months
// in few events.
func TestQuiet(t *testing.T) {
	c := smallPool(3, 30)
	for i := range c.Jobs {
		c.Jobs[i].ResubmitAfter, c.Jobs[i].Spec.Count = 0, 1
	}
	c.Jobs[0].Runtimes, c.Jobs[29].At = []time.Duration{time.Hour}, 30*time.Minute
	playPool(t, c, 24*time.Hour)
	loud, err := New(c)
	if err != nil || !loud.RunToEnd(24*time.Hour) {
		t.Fatal(err)
	}
	c.OnlyOnChange = true
	quiet := playPool(t, c, 24*time.Hour)
	for i, a := range loud.Outcomes() {
		b := quiet.Outcomes()[i]
		if d := a.FirstStarted - b.FirstStarted; d < -2*time.Second || d > 2*time.Second || a.Attempts != b.Attempts {
			t.Errorf("job %d begins at %v, and at %v in a quiet pool", i, a.FirstStarted, b.FirstStarted)
		}
	}
	c.Jobs = []JobConfig{{Spec: c.Jobs[0].Spec, Runtimes: []time.Duration{60 * 24 * time.Hour}},
		{At: 60 * 24 * time.Hour, Spec: c.Jobs[0].Spec, Runtimes: []time.Duration{time.Minute}}}
	c.SelfCheck = false
	if months := playPool(t, c, 61*24*time.Hour); months.Events() > 60*24*60*5 {
		t.Errorf("%d events", months.Events())
	}
}

// initialState returns a pool where four tasks run at the start and one waits. One of the
// four runs for ever.
func initialState(t *testing.T, seed uint64) SimulationConfig {
	t.Helper()
	c := SimulationConfig{Seed: seed, Managers: 1, Schedds: 2, SelfCheck: true,
		StartTime: time.Unix(1_700_000_000, 0)}
	units, err := gpu.CutUnits(gpu.MachineTopology{CPU: 4000, Memory: 8 << 30, Cores: make([]gpu.CPUCore, 4)},
		gpu.LayoutConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"machine0", "schedd1"} {
		c.Machines = append(c.Machines, MachineConfig{Name: name, Units: units,
			Resources: roost.Resources{CPU: 4000, Memory: 8 << 30, Disk: 1 << 30}})
	}
	ad := classad.New()
	ad.SetInt(roost.AttrRequestCpus, 2)
	ad.SetInt(roost.AttrRequestMemory, 1024)
	each := roost.Resources{CPU: 2000, Memory: 1 << 30}
	place := func(machine int, left time.Duration) InitialPlacement {
		return InitialPlacement{machine, gpu.Placement{Parts: []gpu.UnitPart{{CPU: each.CPU, Memory: each.Memory}}},
			each, time.Hour, left, 0}
	}
	c.Jobs = []JobConfig{
		{At: -time.Minute, Spec: queue.SubmitSpec{Ad: ad, Count: 1}, Runtimes: []time.Duration{time.Minute}},
		{At: -2 * time.Hour, Schedd: 1, Spec: queue.SubmitSpec{Ad: ad, Count: 3},
			Runtimes: []time.Duration{2 * time.Hour}, InitialPlacements: []InitialPlacement{place(0,
				100*time.Second), place(0, ForEver), place(1, 10*time.Minute)}},
		{At: -2 * time.Hour, Spec: queue.SubmitSpec{Ad: ad, Count: 1}, Runtimes: []time.Duration{2 * time.Hour},
			InitialPlacements: []InitialPlacement{place(1, 15*time.Minute)}},
	}
	return c
}

// TestInitialState checks that tasks that run at the start continue in place. They run
// for their remaining time and are not started again. Waiting tasks have waited, and
// crashes in the first minute change none of it.
func TestInitialState(t *testing.T) {
	for seed := range uint64(4) {
		c := initialState(t, seed)
		c.Actions = []UserAction{{At: 20 * time.Minute, Job: 1, Verb: wire.ActRequest_REMOVE}}
		a := audit.New(audit.DefaultRules())
		c.Observe = a.Observe
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, schedds, _ := p.Nodes(); schedds[1] != "schedd1x" {
			t.Fatalf("schedds %v beside a machine schedd1", schedds)
		}
		if s := p.Sample(); s.Running != 4 || s.Waiting != 1 || s.Endless != 1 || s.Used.CPU != 8000 {
			t.Fatalf("seed %d: at the beginning: %+v", seed, s)
		}
		if seed > 0 {
			r := eventloop.NewRand(seed, 5)
			for _, n := range []string{"manager0", "schedd0", "schedd1", "schedd1x", "machine0"} {
				p.CallAt(r.Between(0, time.Minute), func() {
					p.Faults().CrashDaemon(n, r.Between(time.Second, 20*time.Second))
				})
			}
		}
		if p.RunUntil(19 * time.Minute); p.IsStuck(3 * time.Minute) {
			t.Errorf("seed %d: it is stuck before the user has removed a job", seed)
		}
		if !p.RunToEnd(time.Hour) {
			t.Errorf("seed %d: what runs for ever was not removed", seed)
		}
		p.RunUntil(p.Now() + time.Minute)
		a.Finish(p.Now())
		for _, b := range a.Violations() {
			t.Errorf("seed %d: %v", seed, b.String())
		}
		all := p.Outcomes()
		if all[1].Attempts != 3 || all[2].Attempts != 1 || all[2].LastEnded != 15*time.Minute ||
			all[2].FirstStarted != -time.Hour || all[1].LastEnded < 20*time.Minute {
			t.Errorf("seed %d: %+v", seed, all)
		}
		// a minute, plus the time until the first task ends
		if w := p.StartWaits(); len(w) != 1 || w[0] < 160*time.Second || w[0] > 165*time.Second {
			t.Errorf("seed %d: it has waited for %v", seed, w)
		}
	}
}

// TestIsStuck checks when a pool is stuck. The last task that ends by itself has ended by
// then, and users and administrators do nothing more.
func TestIsStuck(t *testing.T) {
	for _, drained := range []time.Duration{0, 12 * time.Minute} {
		c := initialState(t, 0)
		if drained > 0 {
			c.Drains = []MachineDrain{{At: drained, Machine: "machine0", Span: 5 * time.Minute}}
		}
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		last := max(15*time.Minute, drained+5*time.Minute)
		for _, x := range []struct {
			at    time.Duration
			stuck bool
		}{{last - time.Minute, false}, {last + 2*time.Minute, false}, {last + 4*time.Minute, true}} {
			if p.RunUntil(x.at); p.IsStuck(3*time.Minute) != x.stuck {
				t.Errorf("drained at %v: stuck at %v: %v, want %v", drained, x.at, !x.stuck, x.stuck)
			}
		}
	}
}

func injectFault(p *Pool, what int, one, other string, d time.Duration) {
	switch what {
	case 0:
		p.Faults().CrashDaemon(one, d)
	case 1:
		p.Faults().RebootHost(one, d)
	case 2:
		p.Faults().TearNextWrite(one)
	case 3:
		p.Faults().PauseDaemon(one, d)
	case 4:
		p.Faults().SuspendHost(one, d)
	case 5:
		p.Faults().CutLink(one, other, 3*d)
	case 6:
		p.Faults().BreakSessions(one, other)
	case 7:
		p.Faults().FullDisk(one, d)
	case 8:
		p.Faults().SlowDisk(one, d/10, d)
	case 9:
		p.Faults().SlowNode(one, d/1000, d)
	}
}
