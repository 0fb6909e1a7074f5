package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/swf"
)

const mix = `
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

// played plays a config for so long.
func played(t *testing.T, c pool.Config, until time.Duration) *pool.Pool {
	t.Helper()
	c.Quiet = true
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.Run(until)
	return p
}

// run plays a config, and returns the pool when all is over.
func run(t *testing.T, c pool.Config) *pool.Pool {
	t.Helper()
	p := played(t, c, 0)
	if !p.Finish(100*24*time.Hour) || len(p.Refused()) > 0 {
		t.Fatalf("not all jobs are over at %v: %+v; refused %v", p.Now(), p.State(), p.Refused())
	}
	return p
}

// TestMix: what is written down is what is played, and the seed decides the rest.
func TestMix(t *testing.T) {
	m, diags := submit.ParseMix([]byte(mix), submit.Options{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := FromMix(m, 1)
	if len(c.Machines) != 5 || len(c.Jobs) != 55 || c.Schedds != 2 {
		t.Fatalf("%d machines, %d jobs, %d schedds", len(c.Machines), len(c.Jobs), c.Schedds)
	}
	p := run(t, c)
	if s := p.State(); s.Over != 105 || s.Used.CPU != 0 {
		t.Fatalf("at the end: %+v", s)
	}
	if w := Summarise(p.Waits()); w.Tasks != 105 || w.Most < 10*time.Minute || w.Most > 11*time.Minute { // two GPUs, five tasks of five minutes
		t.Fatalf("waits: %+v", w)
	}
	if again := run(t, FromMix(m, 1)); again.Digest() != p.Digest() {
		t.Fatal("the same seed is another run")
	}
	if other := FromMix(m, 2); other.Jobs[20].At == c.Jobs[20].At {
		t.Fatal("another seed draws the same")
	}
}

// TestLentMix: while the owners are there nothing runs on their machines. Those that are nobody's go on.
func TestLentMix(t *testing.T) {
	m, diags := submit.ParseMix([]byte(`
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
`), submit.Options{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := FromMix(m, 1)
	for i := range c.Machines {
		if owned := strings.HasPrefix(c.Machines[i].Name, "desk"); owned != (c.Machines[i].Owner != nil) {
			t.Fatalf("%+v", c.Machines[i])
		}
	}
	p := played(t, c, 9*time.Hour)
	if s := p.State(); s.Running != 1 || !p.Haunted() {
		t.Fatalf("while they are there: %+v", s)
	}
	p.Run(10*time.Hour + 30*time.Minute)
	if s := p.State(); s.Running != 21 {
		t.Fatalf("when they have gone: %+v", s)
	}
	if !p.Finish(48 * time.Hour) {
		t.Fatalf("%+v", p.State())
	}
	if l, ok := p.Lending(); !ok || l.Visits != 10 || l.Left != 0 { // all of it is done in the first night
		t.Errorf("%+v", l)
	}
	if again := played(t, FromMix(m, 1), 0); !again.Finish(48*time.Hour) || again.Digest() != p.Digest() {
		t.Error("the same seed is another run")
	}
}

// TestLog: jobs of a log run for as long as there, on a machine that is large enough as in turn, and as gangs on several.
func TestLog(t *testing.T) {
	log, err := swf.Read(strings.NewReader("; MaxProcs: 4\n" +
		"1 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1\n2 1 -1 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1\n3 200 -1 90 1 -1 -1 1 200 -1 1 2 -1 -1 -1 -1 -1 -1\n" +
		"4 3 0 -1 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1\n5 3 0 50 8 -1 -1 8 60 -1 1 2 -1 -1 -1 -1 -1 -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, machines := range []int{1, 2} {
		c, left, err := FromLog(log, 4, machines, 1)
		if err != nil || left != 2 {
			t.Fatalf("%d are left out, %v", left, err)
		}
		p := run(t, c)
		all := p.Outcomes()
		if wait := all[1].First - c.Jobs[1].At; wait < 99*time.Second || wait > 101*time.Second {
			t.Errorf("on %d machines the second job waited for %v, want 99s", machines, wait)
		}
		if ran := all[2].Last - all[2].First; ran != 90*time.Second {
			t.Errorf("on %d machines the third job ran for %v", machines, ran)
		}
	}
	if _, _, err := FromLog(log, 4, 5, 1); err == nil {
		t.Error("four processors were spread over five machines")
	}
}

// TestCourse: however long it takes, there are not more instants than that, and they are evenly spread.
func TestCourse(t *testing.T) {
	c := &Course{Step: firstStep}
	for range 10_000 {
		c.Look(pool.State{At: c.Next()})
	}
	if len(c.Instants) > mostInstants {
		t.Fatalf("%d instants", len(c.Instants))
	}
	for i := range c.Instants {
		if c.Instants[i].At != time.Duration(i)*c.Step {
			t.Fatalf("instant %d is at %v, and the step is %v", i, c.Instants[i].At, c.Step)
		}
	}
}
