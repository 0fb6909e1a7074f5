package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/trace"
	"github.com/roost-batch/roost/internal/submit"
)

const testMix = `
locals { nodes = 4 }
pool { schedds = 2 }
machines "node" {
  count = local.nodes
  cpus = 4
  memory = "8GiB"
}
machines "gpu" {
  cpus = 8
  memory = "64GiB"
  gpus = 2
  gpu_memory = "40GiB"
}
job "short" {
  command = ["/bin/sleep", "1"]
  count = 2
}
job "train" {
  command = ["/bin/train"]
  gpus = 1
  memory = "8GiB"
}
load "short" {
  jobs = 50
  every = "2s"
  run = "20s"
  spread = 1
  users = 3
}
load "train" {
  jobs = 5
  run = "5m"
}
`

// playFor simulates a config for a time.
func playFor(t *testing.T, c pool.SimulationConfig, until time.Duration) *pool.Pool {
	t.Helper()
	c.OnlyOnChange = true
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.RunUntil(until)
	return p
}

// runToEnd simulates a config until all jobs have ended.
func runToEnd(t *testing.T, c pool.SimulationConfig) *pool.Pool {
	t.Helper()
	p := playFor(t, c, 0)
	if !p.RunToEnd(100*24*time.Hour) || len(p.Refused()) > 0 {
		t.Fatalf("not all jobs are over at %v: %+v; refused %v", p.Now(), p.Sample(), p.Refused())
	}
	return p
}

// TestMix checks that a mix is simulated as described, and that the seed decides the
// rest.
func TestMix(t *testing.T) {
	m, diags := submit.ParseSimPool([]byte(testMix), submit.ParseOptions{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := FromMix(m, 1)
	if len(c.Machines) != 5 || len(c.Jobs) != 55 || c.Schedds != 2 {
		t.Fatalf("%d machines, %d jobs, %d schedds", len(c.Machines), len(c.Jobs), c.Schedds)
	}
	p := runToEnd(t, c)
	if s := p.Sample(); s.Ended != 105 || s.Used.CPU != 0 {
		t.Fatalf("at the end: %+v", s)
	}
	// two GPUs, five tasks of five minutes
	if w := SummarizeWaits(p.StartWaits()); w.Tasks != 105 || w.Max < 10*time.Minute || w.Max > 11*time.Minute {
		t.Fatalf("waits: %+v", w)
	}
	if again := runToEnd(t, FromMix(m, 1)); again.Digest() != p.Digest() {
		t.Fatal("the same seed is another run")
	}
	if other := FromMix(m, 2); other.Jobs[20].At == c.Jobs[20].At {
		t.Fatal("another seed draws the same")
	}
}

// TestOwnedMix checks that nothing runs on desktops while their owners are present.
// Machines without owners continue.
func TestOwnedMix(t *testing.T) {
	m, diags := submit.ParseSimPool([]byte(`
machines "desk" {
  count = 10
  cpus = 2
  policy = "desktop"
  leave_after = "5m"
  owner {
    hours = ["08:00-18:00"]
  }
}
machines "node" { cpus = 1 }
job "a" { command = ["/bin/true"] }
load "a" {
  jobs = 60
  from = "1m"
  run = "1h"
}
`), submit.ParseOptions{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := FromMix(m, 1)
	for i := range c.Machines {
		if owned := strings.HasPrefix(c.Machines[i].Name, "desk"); owned != (c.Machines[i].OwnerPolicy != nil) {
			t.Fatalf("%+v", c.Machines[i])
		}
	}
	p := playFor(t, c, 9*time.Hour)
	if s := p.Sample(); s.Running != 1 || !p.HasOwners() {
		t.Fatalf("while they are there: %+v", s)
	}
	p.RunUntil(10*time.Hour + 30*time.Minute)
	if s := p.Sample(); s.Running != 21 {
		t.Fatalf("when they have gone: %+v", s)
	}
	if !p.RunToEnd(48 * time.Hour) {
		t.Fatalf("%+v", p.Sample())
	}
	if l, ok := p.OwnerStats(); !ok || l.Visits != 10 || l.Vacated != 0 { // everything completes in the first night
		t.Errorf("%+v", l)
	}
	if again := playFor(t, FromMix(m, 1), 0); !again.RunToEnd(48*time.Hour) || again.Digest() != p.Digest() {
		t.Error("the same seed is another run")
	}
}

// TestLog checks that the jobs of a log run as long as there. They run one after another
// on a large machine, and as gangs on several small ones.
func TestLog(t *testing.T) {
	log, err := trace.Read(strings.NewReader("; MaxProcs: 4\n" +
		"1 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1\n2 1 -1 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1\n3 " +
		"200 -1 90 1 -1 -1 1 200 -1 1 2 -1 -1 -1 -1 -1 -1\n" +
		"4 3 0 -1 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1\n5 3 0 50 8 -1 -1 8 60 -1 1 2 -1 -1 -1 -1 -1 -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, machines := range []int{1, 2} {
		c, left, err := FromLog(log, 4, machines, 1)
		if err != nil || left != 2 {
			t.Fatalf("%d are left out, %v", left, err)
		}
		p := runToEnd(t, c)
		all := p.Outcomes()
		if wait := all[1].FirstStarted - c.Jobs[1].At; wait < 99*time.Second || wait > 101*time.Second {
			t.Errorf("on %d machines the second job waited for %v, want 99s", machines, wait)
		}
		if ran := all[2].LastEnded - all[2].FirstStarted; ran != 90*time.Second {
			t.Errorf("on %d machines the third job ran for %v", machines, ran)
		}
	}
	if _, _, err := FromLog(log, 4, 5, 1); err == nil {
		t.Error("four processors were spread over five machines")
	}
}

// TestTimeSeries checks that the samples are bounded and evenly spaced.
func TestTimeSeries(t *testing.T) {
	c := &TimeSeries{Step: initialStep}
	for range 10_000 {
		c.AddSample(pool.StateSample{At: c.NextSample()})
	}
	if len(c.Samples) > maxSamples {
		t.Fatalf("%d instants", len(c.Samples))
	}
	for i := range c.Samples {
		if c.Samples[i].At != time.Duration(i)*c.Step {
			t.Fatalf("instant %d is at %v, and the step is %v", i, c.Samples[i].At, c.Step)
		}
	}
}
