package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/ledger"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// fakeCluster is an outer system, and the pool into which its pilots come.
type fakeCluster struct {
	mu     sync.Mutex
	jobs   map[string]*fakeJob // by id
	demand []plan.Demand
	serial int
	// called at the points where a provisioner may be killed; nil: never
	at func(point string)
	// what goes wrong; "": nothing
	submitError, statusError string
	answerLost               bool
}

type fakeJob struct {
	key            string
	running, ended bool
	host           string
	started        time.Time
}

func newCluster(units int) *fakeCluster {
	class, err := match.NewClass("", fairshare.Submitter{Owner: "ada"}, roost.BatchBand, roost.Resources{CPU: 1000,
		Memory: roost.GiB})
	if err != nil {
		panic(err)
	}
	return &fakeCluster{jobs: map[string]*fakeJob{}, demand: []plan.Demand{{Job: "1.h", Band: roost.BatchBand,
		Submitter: fairshare.Submitter{Owner: "ada"}, Units: units, Since: time.Now().Add(-time.Hour),
		Walltime: time.Minute, Class: class}}}
}

func (c *fakeCluster) point(name string) {
	if c.at != nil {
		c.at(name)
	}
}

func (c *fakeCluster) Submit(_ context.Context, job driver.Job) (string, error) {
	c.point("before submit")
	c.mu.Lock()
	if c.submitError != "" {
		defer c.mu.Unlock()
		return "", errors.New(c.submitError)
	}
	c.serial++
	id := fmt.Sprint("id", c.serial)
	c.jobs[id] = &fakeJob{key: job.Key}
	lost := c.answerLost
	c.mu.Unlock()
	c.point("after submit")
	if lost {
		return "", fmt.Errorf("sbatch: %w: timed out", roost.Unavailable)
	}
	return id, nil
}

func (c *fakeCluster) Status(_ context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statusError != "" {
		return nil, errors.New(c.statusError)
	}
	answers := map[string]plan.OuterStatus{}
	for _, id := range ids {
		if j := c.jobs[id]; j != nil {
			s := plan.OuterStatus{ID: id, Text: "fake", Started: j.started}
			switch {
			case j.ended:
				s.State = plan.OuterEnded
			case j.running:
				s.State = plan.OuterRunning
			}
			answers[id] = s
		}
	}
	return answers, nil
}

func (c *fakeCluster) Cancel(_ context.Context, ids []string) error {
	c.point("before cancel")
	c.mu.Lock()
	for _, id := range ids {
		if j := c.jobs[id]; j != nil {
			j.ended = true
		}
	}
	c.mu.Unlock()
	c.point("after cancel")
	return nil
}

func (c *fakeCluster) Find(_ context.Context, key string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answerLost {
		return "", errors.New("squeue: timed out")
	}
	for id, j := range c.jobs {
		if j.key == key {
			return id, nil
		}
	}
	return "", nil
}

func (c *fakeCluster) CanHold() bool { return true }

func (c *fakeCluster) Demand(context.Context) ([]plan.Demand, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]plan.Demand{}, c.demand...), nil
}

func (c *fakeCluster) Pilots(context.Context) (pilots []plan.Pilot, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if !j.running || j.ended {
			continue
		}
		ad := classad.New()
		ad.SetString(roost.AttrName, j.key)
		for _, name := range []string{roost.AttrCpus, roost.AttrTotalCpus, roost.AttrMemory, roost.AttrTotalMemory} {
			ad.SetInt(name, 2048)
		}
		ad.SetInt(roost.AttrCpus, 0) // it runs tasks
		ad.SetInt(roost.AttrTotalCpus, 1)
		pilots = append(pilots, plan.Pilot{Name: j.key, Key: j.key, Host: j.host, Until: j.started.Add(time.Hour),
			Ad: ad})
	}
	return pilots, nil
}

func (c *fakeCluster) PilotToken(_ context.Context, _ *provider.Settings, pilots int,
	_ time.Duration) (string, error) {
	return fmt.Sprintf("token for %d\n", pilots), nil
}

// living counts the jobs that are queued or run; keys that two have are an error.
func (c *fakeCluster) living(t *testing.T) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := map[string]bool{}
	for _, j := range c.jobs {
		if keys[j.key] {
			t.Errorf("two jobs have the key %s", j.key)
		}
		keys[j.key] = true
		if !j.ended {
			n++
		}
	}
	return n
}

func (c *fakeCluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// startProvisioner runs a provisioner with its journal in a directory.
func startProvisioner(t *testing.T, c *fakeCluster, dir string) (p *Provisioner, stop func()) {
	s := provider.Settings{Name: "uni", Kind: provider.Slurm, Walltime: time.Hour,
		Directory: filepath.Join(dir, "outer"),
		Node:      provider.NodeShape{Resources: roost.Resources{CPU: 1000, Memory: 2 * roost.GiB}}}
	p = &Provisioner{Dir: dir, Source: c, Tokens: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Load:      func() ([]provider.Settings, error) { return []provider.Settings{s.WithDefaults()}, nil },
		NewSystem: func(*provider.Settings) (driver.System, error) { return c, nil }}
	var err error
	if p.journal, p.state, err = ledger.Open(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.loop(ctx) }()
	return p, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.journal.Close()
	}
}

// TestLife follows allocations from demand to their ends.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		p, stop := startProvisioner(t, c, dir)
		time.Sleep(time.Minute)
		if n := c.living(t); n != 2 {
			t.Fatalf("%d jobs", n)
		}
		tokens, _ := filepath.Glob(filepath.Join(dir, "outer", "*.token"))
		if text, err := os.ReadFile(tokens[0]); len(tokens) != 2 || string(text) != "token for 1\n" || err != nil {
			t.Errorf("%v, %q, %v", tokens, text, err)
		}
		c.set(func() {
			for _, j := range c.jobs {
				j.running, j.started, j.host = true, time.Now(), "h"+j.key
			}
			c.demand = nil
		})
		time.Sleep(10 * time.Minute)
		for _, a := range p.state.Allocations {
			if a.State != plan.Running || a.Live != 1 || len(a.Hosts) != 1 {
				t.Errorf("%+v", a)
			}
		}
		c.set(func() {
			for _, j := range c.jobs {
				j.ended = true
			}
		})
		time.Sleep(3 * time.Minute)
		for _, a := range p.state.Allocations {
			if a.State != plan.Ended || a.Outcome != plan.Worked {
				t.Errorf("%+v", a)
			}
		}
		if tokens, _ := filepath.Glob(filepath.Join(dir, "outer", "*.token")); len(tokens) != 0 {
			t.Errorf("tokens of ended allocations: %v", tokens)
		}
		stop()
	})
}

// TestSystemDown checks I7: a status that is not answered for hours causes no submit. A
// submit without an answer is looked for and not repeated.
func TestSystemDown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.answerLost = true
		p, stop := startProvisioner(t, c, dir)
		time.Sleep(time.Hour)
		if n := c.living(t); n != 1 || len(p.state.Allocations) != 1 {
			t.Fatalf("%d jobs, %d allocations", n, len(p.state.Allocations))
		}
		c.set(func() { c.answerLost, c.statusError = false, "connection refused" })
		time.Sleep(time.Hour)
		for _, a := range p.state.Allocations {
			if a.State != plan.Queued || a.OuterID != "id1" {
				t.Errorf("%+v", a)
			}
		}
		if n := c.living(t); n != 1 || p.state.Providers[0].History.StatusError == "" {
			t.Errorf("%d jobs, %+v", n, p.state.Providers[0].History)
		}
		stop()
	})
}

// TestRefusal checks that a refused submit is one only if the outer system has no such
// job.
func TestRefusal(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.submitError = "no such account"
		p, stop := startProvisioner(t, c, dir)
		time.Sleep(30 * time.Second)
		if h := p.state.Providers[0].History; h.Refusals != 1 || h.LastError != "no such account" {
			t.Errorf("%+v", h)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "outer", "*")); len(files) != 0 {
			t.Errorf("files of a refused submit: %v", files)
		}
		stop()
	})
}

// copyJournal copies the journal as it would be found after a SIGKILL now.
func copyJournal(t *testing.T, from, to string) {
	files, err := filepath.Glob(filepath.Join(from, ledger.FileName+"*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(f)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledAnywhere checks I8: after a SIGKILL no allocation is there twice, and none is
// forgotten. The kill comes before or after a program that changes something.
func TestKilledAnywhere(t *testing.T) {
	for _, point := range []string{"before submit", "after submit", "before cancel", "after cancel"} {
		t.Run(point, func(t *testing.T) {
			first, second := t.TempDir(), t.TempDir()
			synctest.Test(t, func(t *testing.T) { killAt(t, point, first, second) })
		})
	}
}

func killAt(t *testing.T, point, first, second string) {
	c := newCluster(2)
	killed, release := make(chan struct{}), make(chan struct{})
	times := 0
	c.at = func(here string) {
		if here != point {
			return
		}
		if times++; times > 1 {
			return
		}
		synctest.Wait() // the other goroutines do nothing now, so that the journal is as a kill would leave it
		copyJournal(t, first, second)
		close(killed)
		<-release // the killed one does nothing any more
	}
	_, stopFirst := startProvisioner(t, c, first)
	if strings.HasSuffix(point, "cancel") {
		time.Sleep(time.Minute)
		c.set(func() { c.demand = nil })
	}
	<-killed
	p, stop := startProvisioner(t, c, second)
	time.Sleep(30 * time.Minute)
	living := 0
	for _, a := range p.state.Allocations {
		if a.State != plan.Ended {
			living++
		}
	}
	want := 2
	if strings.HasSuffix(point, "cancel") {
		want = 0
	}
	if n := c.living(t); n != want || living != want {
		t.Errorf("%d jobs, and %d allocations, want %d: %+v", n, living, want, p.last)
	}
	stop()
	c.set(func() { c.submitError = "killed" })
	c.at = nil
	close(release)
	stopFirst()
}

func TestScript(t *testing.T) {
	s := provider.Settings{Name: "uni", Kind: provider.Slurm, Walltime: time.Hour, Before: "module load gcc",
		After: "rm -rf scratch", Wrap: []string{"apptainer", "exec", "a b.sif"}, Program: "~/bin/roost"}
	s = s.WithDefaults()
	text := scriptText(&s, &plan.Allocation{Key: "rpk", Provider: "uni", Nodes: 2, Walltime: time.Hour}, "/home/ada/p")
	for _, want := range []string{"srun --overlap --kill-on-bad-exit=0 --ntasks=2 --nodes=2",
		`apptainer exec 'a b.sif' "$HOME"/bin/roost pilot --token-file /home/ada/p/rpk.token --walltime 3600s ` +
			"--margin 72s --idle 300s --first-idle 300s --key rpk --provider uni &",
		"module load gcc\nroost_status=$?", "rm -rf scratch\nroost_end $roost_status"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestScriptRuns runs a script with a program in the place of the pilot.
func TestScriptRuns(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "roost")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" > "+dir+"/ran\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := provider.Settings{Name: "uni", Kind: provider.Slurm, Walltime: time.Hour, Program: program,
		Before: "MODE=set", After: "echo $MODE > " + dir + "/after"}
	s = s.WithDefaults()
	script := scriptText(&s, &plan.Allocation{Key: "rpk", Provider: "uni", Nodes: 1, Walltime: time.Hour}, dir)
	_, err := driver.Shell{}.Run(t.Context(), "script", script)
	if err == nil { // the script ends the shell, so that its status comes from there
		t.Error("the status of the pilot is lost")
	}
	ran, _ := os.ReadFile(dir + "/ran")
	after, _ := os.ReadFile(dir + "/after")
	if !strings.HasPrefix(string(ran), "pilot --token-file "+dir+"/rpk.token") || string(after) != "set\n" {
		t.Errorf("%q, %q", ran, after)
	}
	s.Before = "false"
	script = scriptText(&s, &plan.Allocation{Key: "rpk", Provider: "uni", Nodes: 1, Walltime: time.Hour}, dir)
	os.Remove(dir + "/ran")
	driver.Shell{}.Run(t.Context(), "script", script)
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("a pilot ran although the lines before it failed")
	}
}

// TestFailingMachines checks which drains say that tasks fail on a pilot.
func TestFailingMachines(t *testing.T) {
	got := failingMachines([]byte(`[
{"name": "p1", "object": {"node": "p1", "reason": "drained by itself: 4 attempts failed"}},
{"name": "p2", "object": {"node": "p2", "reason": "drained by itself: says eve"}, "set_by": "eve@n1"},
{"name": "p3", "object": {"node": "p3", "reason": "new disk"}, "set_by": "root@n1"}]`))
	if len(got) != 1 || got["p1"] != "4 attempts failed" {
		t.Errorf("got %v", got)
	}
	for _, text := range []string{"", "null", "{}", "[1]"} {
		if got := failingMachines([]byte(text)); len(got) > 0 {
			t.Errorf("%s: %v", text, got)
		}
	}
}
