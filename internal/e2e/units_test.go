package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/config"
)

// smallPool starts a pool of one node with two cores.
func smallPool(t *testing.T) *Pool {
	t.Helper()
	return startPool(t, PoolOptions{Nodes: 1, CPUs: 2})
}

// startPool starts a pool in a directory of its own, and stops it at the end of the test.
func startPool(t *testing.T, o PoolOptions) *Pool {
	t.Helper()
	o.Roost, o.Dir = program(t), filepath.Join(openDir(t), "pool")
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("the pool:\n%s", p.Output())
		}
	})
	return p
}

// unitPool starts a pool on one machine with these settings of the startd.
func unitPool(t *testing.T, startd config.StartdSettings) *Pool {
	t.Helper()
	startd.Name = "host1"
	return nodePool(t, &config.Node{Startds: []config.StartdSettings{startd}})
}

// nodePool starts a pool on one machine with this node file.
func nodePool(t *testing.T, n *config.Node) *Pool {
	t.Helper()
	dir := openDir(t)
	p := &Pool{PoolOptions: PoolOptions{Roost: program(t), Dir: filepath.Join(dir, "pool")}, done: make(chan struct{})}
	n.Name, n.Dir, n.Collector, n.Negotiator, n.Schedd = "host1", p.Dir, &config.CollectorSettings{},
		&config.NegotiatorSettings{}, &config.ScheddSettings{AllowRoot: true}
	for i := range n.Startds {
		n.Startds[i].AllowRoot = true
	}
	file := filepath.Join(dir, "node.hcl")
	if err := os.WriteFile(file, config.Write(n), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(p.Roost, "master", "--config", file)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.done
		if t.Failed() {
			t.Logf("the pool:\n%s", p.Output())
		}
	})
	for _, d := range n.Startds {
		p.awaitOutput(t, d.Name, "nodes")
	}
	return p
}

// sleepersOf submits tasks that run until a file exists, and returns a function that ends
// them.
func (p *Pool) sleepersOf(t *testing.T, name, settings string) (finish func()) {
	t.Helper()
	dir := openDir(t)
	file, done := filepath.Join(dir, "job.hcl"), filepath.Join(dir, "done")
	job := "job \"" + name + "\" {\n  script = \"while [ ! -e " + done +
		" ]; do sleep 0.05; done\"\n  memory = \"64MiB\"\n" + settings + "}\n"
	if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := p.Command(t.Context(), "submit", file); code != 0 {
		t.Fatalf("submit %s: %s%s", name, stdout, stderr)
	}
	return func() {
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// awaitSuccess waits until the jobs of that name have succeeded.
func (p *Pool) awaitSuccess(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if stdout, stderr, code := p.Command(ctx, "wait", "@"+name); code != 0 {
		why, _, _ := p.Command(t.Context(), "why", "@"+name)
		t.Fatalf("%s ended with %d: %s%s\n%s", name, code, stdout, stderr, why)
	}
}

// TestUnits checks a machine of two resource units of two cores each. One task may wait
// in each of its node queues.
func TestUnits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p := unitPool(t, config.StartdSettings{
		Resources: roost.Resources{CPU: 4000, Memory: 4 * roost.GiB, Disk: roost.GiB},
		Layout:    gpu.LayoutConfig{CPUUnits: 2}, Queue: config.NodeQueue{Length: 1},
	})
	wide := p.sleepersOf(t, "wide", "  cpus = 3\n")
	p.awaitOutput(t, "no single resource unit has so much free: the most is 2 cpus", "why", "@wide")
	if stdout, stderr, code := p.Command(t.Context(), "rm", "@wide"); code != 0 {
		t.Fatalf("rm: %s%s", stdout, stderr)
	}
	wide()

	quarter := p.sleepersOf(t, "quarter", "  count = 16\n  cpus = 0.25\n")
	p.awaitOutput(t, "16 running", "show", "@quarter")
	waiting := p.sleepersOf(t, "next", "  cpus = 2\n")
	p.awaitOutput(t, "waits on host1 for its turn", "why", "@next")
	stream := p.sleepersOf(t, "server", "  cpus = 2\n  app_class = \"stream\"\n")
	p.awaitOutput(t, "it runs on host1", "why", "@server")
	quarter()
	p.awaitOutput(t, "it runs on host1", "why", "@next")
	p.awaitSuccess(t, "quarter")                // while the queue still has it under this name
	p.awaitOutput(t, "placed", "show", "@next") // known when it has started
	waiting()
	stream()
	for _, name := range []string{"next", "server"} {
		p.awaitSuccess(t, name)
	}
}

// TestGPUShares checks that three tasks of 20 GiB run together on a GPU of 64 GiB. A
// fourth waits, and a request for more than the GPU has is refused.
func TestGPUShares(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	m := fakelib.New(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{{UUID: "GPU-a", Model: "NVIDIA Test",
		Memory: 64 * roost.GiB, Celsius: 40}}})
	p := unitPool(t, config.StartdSettings{
		Resources: roost.Resources{CPU: 4000, Memory: 4 * roost.GiB, Disk: roost.GiB},
		GPUs:      config.GPUSettings{Library: m.Library},
	})
	p.awaitOutput(t, "GPU-a", "nodes", "--gpus")
	finish := p.sleepersOf(t, "shares", "  count = 4\n  cpus = 1\n  gpu_memory = \"20GiB\"\n")
	p.awaitOutput(t, "3 running", "show", "@shares")
	p.awaitOutput(t, "no GPU with 20GiB free (the largest free share is 4GiB on host1)", "why", "last[3]")
	finish()
	p.awaitSuccess(t, "shares")
	for key := 0; ; key++ { // accepted until the schedd knows the GPU
		_, stderr, code := p.Command(t.Context(), "run", "--detach", "--gpu-memory", "80GiB", "--", "true")
		if code == 0 && key < 600 {
			continue
		}
		if code != 65 || !strings.Contains(stderr, "the largest has 64GiB, on host1") {
			t.Fatalf("more than the card has: code %d: %s", code, stderr)
		}
		break
	}
}
