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
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// small draws a pool of a seed: some machines, schedds and managers, and jobs of several sizes and lengths that come in the first minute.
func small(seed uint64, jobs int) Config {
	r := kernel.NewRand(seed, 99)
	c := Config{Seed: seed, Managers: 1 + 2*r.Below(2), Schedds: 1 + r.Below(3), Checks: true}
	for range 2 + r.Below(5) {
		c.Machines = append(c.Machines, Machine{Resources: roost.Resources{CPU: roost.MilliCPU(2+2*r.Below(4)) * 1000, Memory: 16 << 30, Disk: 100 << 30}})
	}
	for range jobs {
		ad := classad.New()
		ad.SetInt(roost.AttrRequestCpus, int64(1+r.Below(2)))
		ad.SetInt(roost.AttrRequestMemory, 512)
		j := Job{
			At: r.Between(0, time.Minute), Schedd: r.Below(c.Schedds), Owner: fmt.Sprintf("user%d", r.Below(3)), Spec: queue.Spec{Ad: ad, Count: 1 + r.Below(4)},
			Output: r.Chance(0.3),
		}
		for range j.Spec.Count {
			j.Run = append(j.Run, r.LogNormal(10*time.Second, 1.5))
			j.Codes = append(j.Codes, int32(r.Below(10)/9))
		}
		if r.Chance(0.2) {
			j.Again = r.Between(0, time.Minute)
		}
		c.Jobs = append(c.Jobs, j)
	}
	return c
}

// play runs a pool until all its jobs are over, and holds what was seen against the promises.
func play(t *testing.T, c Config, within time.Duration) *Pool {
	t.Helper()
	a := audit.New(audit.DefaultRules())
	c.Observe = a.See
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Finish(within) {
		t.Fatalf("seed %d: %d jobs are not over after %v", c.Seed, p.unfinished, p.Now())
	}
	p.Run(p.Now() + time.Minute)
	a.Finish(p.Now())
	for _, b := range a.Broken() {
		t.Errorf("seed %d: %v", c.Seed, b.String())
	}
	if all := p.Refused(); len(all) > 0 {
		t.Errorf("seed %d: refused: %v", c.Seed, all)
	}
	return p
}

// TestFaultless: where nothing goes wrong all jobs come to their end, every promise is kept, and a seed is the same run again, whether or not ads are read as text.
func TestFaultless(t *testing.T) {
	for seed := range uint64(3) {
		c := small(seed, 40)
		spelt := c
		spelt.Spelt = true
		p, again := play(t, c, 24*time.Hour), play(t, spelt, 24*time.Hour)
		if p.Digest() != again.Digest() || p.Events() != again.Events() {
			t.Errorf("seed %d: %d events with the digest %016x, and then %d with %016x", seed, p.Events(), p.Digest(), again.Events(), again.Digest())
		}
		other := small(seed, 40)
		other.Seed += 1000
		if o := play(t, other, 24*time.Hour); o.Digest() == p.Digest() {
			t.Errorf("seed %d: another seed is the same run", seed)
		}
	}
}

// TestBlows: daemons die, hosts lose their power, sleep or stand still, ways are cut, disks are full; when that is over all jobs come to their end, and no
// promise was broken. More seeds than a few: ROOST_POOL_SEEDS=1000 go test ./internal/sim/pool -run Blows.
func TestBlows(t *testing.T) {
	seeds, err := strconv.ParseUint(cmp.Or(os.Getenv("ROOST_POOL_SEEDS"), "4"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range seeds {
		c := small(seed, 20)
		run := func() (*Pool, *audit.Auditor) {
			a := audit.New(audit.DefaultRules())
			c.Observe = a.See
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			r := kernel.NewRand(seed, 5)
			managers, schedds, machines := p.Nodes()
			all := append(append(managers, schedds...), machines...)
			for range 30 {
				one, other := all[r.Below(len(all))], all[r.Below(len(all))]
				d, what := r.Between(0, 20*time.Second), r.Below(10)
				p.At(r.Between(0, 90*time.Second), func() { blow(p, what, one, other, d) })
			}
			if !p.Finish(24 * time.Hour) {
				t.Fatalf("seed %d: %d jobs are not over after %v", seed, p.unfinished, p.Now())
			}
			return p, a
		}
		p, a := run()
		for _, b := range a.Broken() {
			t.Errorf("seed %d: %v", seed, b.String())
		}
		if again, _ := run(); again.Digest() != p.Digest() {
			t.Errorf("seed %d: the digest is %016x, and then %016x", seed, p.Digest(), again.Digest())
		}
	}
}

// TestQuiet: a quiet pool comes to the same as one that is not, and to months in which little happens in few events.
func TestQuiet(t *testing.T) {
	c := small(3, 30)
	for i := range c.Jobs {
		c.Jobs[i].Again, c.Jobs[i].Spec.Count = 0, 1
	}
	c.Jobs[0].Run, c.Jobs[29].At = []time.Duration{time.Hour}, 30*time.Minute
	play(t, c, 24*time.Hour)
	loud, err := New(c)
	if err != nil || !loud.Finish(24*time.Hour) {
		t.Fatal(err)
	}
	c.Quiet = true
	quiet := play(t, c, 24*time.Hour)
	for i, a := range loud.Outcomes() {
		b := quiet.Outcomes()[i]
		if d := a.First - b.First; d < -2*time.Second || d > 2*time.Second || a.Attempts != b.Attempts {
			t.Errorf("job %d begins at %v, and at %v in a quiet pool", i, a.First, b.First)
		}
	}
	c.Jobs = []Job{{Spec: c.Jobs[0].Spec, Run: []time.Duration{60 * 24 * time.Hour}}, {At: 60 * 24 * time.Hour, Spec: c.Jobs[0].Spec, Run: []time.Duration{time.Minute}}}
	c.Checks = false
	if months := play(t, c, 61*24*time.Hour); months.Events() > 60*24*60*5 {
		t.Errorf("%d events", months.Events())
	}
}

// TestBefore: what runs at the beginning goes on where it is, for as long as is left of it, and is not begun again; what waits has waited, and daemons that
// die in the first minute change nothing of that.
func TestBefore(t *testing.T) {
	for seed := range uint64(4) {
		c := Config{Seed: seed, Managers: 1, Schedds: 2, Checks: true, Began: time.Unix(1_700_000_000, 0)}
		units, err := gpu.Cut(gpu.Topology{CPU: 4000, Memory: 8 << 30, Cores: make([]gpu.Core, 4)}, gpu.Layout{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"machine0", "schedd1"} {
			c.Machines = append(c.Machines, Machine{Name: name, Units: units, Resources: roost.Resources{CPU: 4000, Memory: 8 << 30, Disk: 1 << 30}})
		}
		ad := classad.New()
		ad.SetInt(roost.AttrRequestCpus, 2)
		ad.SetInt(roost.AttrRequestMemory, 1024)
		each := roost.Resources{CPU: 2000, Memory: 1 << 30}
		place := func(machine int, left time.Duration) Place {
			return Place{machine, gpu.Placement{Parts: []gpu.Part{{CPU: each.CPU, Memory: each.Memory}}}, each, time.Hour, left, 0}
		}
		c.Jobs = []Job{
			{At: -time.Minute, Spec: queue.Spec{Ad: ad, Count: 1}, Run: []time.Duration{time.Minute}},
			{At: -2 * time.Hour, Schedd: 1, Spec: queue.Spec{Ad: ad, Count: 3}, Run: []time.Duration{2 * time.Hour}, Placed: []Place{place(0, 100*time.Second), place(0, ForEver), place(1, 10*time.Minute)}},
			{At: -2 * time.Hour, Spec: queue.Spec{Ad: ad, Count: 1}, Run: []time.Duration{2 * time.Hour}, Placed: []Place{place(1, 15*time.Minute)}},
		}
		c.Acts = []Act{{At: 20 * time.Minute, Job: 1, Verb: wire.ActRequest_REMOVE}}
		a := audit.New(audit.DefaultRules())
		c.Observe = a.See
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, schedds, _ := p.Nodes(); schedds[1] != "schedd1x" {
			t.Fatalf("schedds %v beside a machine schedd1", schedds)
		}
		if s := p.State(); s.Running != 4 || s.Waiting != 1 || s.Endless != 1 || s.Used.CPU != 8000 {
			t.Fatalf("seed %d: at the beginning: %+v", seed, s)
		}
		if seed > 0 {
			r := kernel.NewRand(seed, 5)
			for _, n := range []string{"manager0", "schedd0", "schedd1", "schedd1x", "machine0"} {
				p.At(r.Between(0, time.Minute), func() { p.Crash(n, r.Between(time.Second, 20*time.Second)) })
			}
		}
		if p.Run(19 * time.Minute); !p.Stuck(3*time.Minute) || p.Stuck(5*time.Minute) {
			t.Errorf("seed %d: it moves for %v", seed, p.Now())
		}
		if !p.Finish(time.Hour) {
			t.Errorf("seed %d: what runs for ever was not removed", seed)
		}
		p.Run(p.Now() + time.Minute)
		a.Finish(p.Now())
		for _, b := range a.Broken() {
			t.Errorf("seed %d: %v", seed, b.String())
		}
		all := p.Outcomes()
		if all[1].Attempts != 3 || all[2].Attempts != 1 || all[2].Last != 15*time.Minute || all[2].First != -time.Hour || all[1].Last < 20*time.Minute {
			t.Errorf("seed %d: %+v", seed, all)
		}
		if w := p.Waits(); len(w) != 1 || w[0] < 160*time.Second || w[0] > 165*time.Second { // a minute, and until the first leaves
			t.Errorf("seed %d: it has waited for %v", seed, w)
		}
	}
}

func blow(p *Pool, what int, one, other string, d time.Duration) {
	switch what {
	case 0:
		p.Crash(one, d)
	case 1:
		p.Reboot(one, d)
	case 2:
		p.Tear(one)
	case 3:
		p.Pause(one, d)
	case 4:
		p.Suspend(one, d)
	case 5:
		p.Cut(one, other, 3*d)
	case 6:
		p.Break(one, other)
	case 7:
		p.FullDisk(one, d)
	case 8:
		p.SlowDisk(one, d/10, d)
	case 9:
		p.SlowNode(one, d/1000, d)
	}
}
