package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/config"
)

// startGPUPool starts a pool on one machine with a GPU of 16 GiB. It also returns the
// library that simulates the GPU.
func startGPUPool(t *testing.T) (*Pool, *fakelib.FakeMachine) {
	t.Helper()
	m := fakelib.New(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{{UUID: "GPU-a", Model: "NVIDIA Test",
		Memory: 16 * roost.GiB, Celsius: 40}}})
	p := unitPool(t, config.StartdSettings{
		Resources: roost.Resources{CPU: 4000, Memory: 4 * roost.GiB, Disk: roost.GiB},
		GPUs:      config.GPUSettings{Library: m.Library},
	})
	p.awaitOutput(t, "GPU-a", "nodes", "--gpus")
	return p, m
}

// awaitOutput repeats a command until it prints a text.
func (p *Pool) awaitOutput(t *testing.T, want string, args ...string) string {
	t.Helper()
	var stdout, stderr string
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		stdout, stderr, _ = p.mustQuery(t, args...)
		return strings.Contains(stdout, want)
	}) {
		t.Fatalf("roost %s never printed %q: %s%s", strings.Join(args, " "), want, stdout, stderr)
	}
	return stdout
}

// mustQuery runs a roost command that only reads.
func (p *Pool) mustQuery(t *testing.T, args ...string) (stdout, stderr string, code int) {
	env := slices.Concat(os.Environ(), p.Env, []string{"ROOST_DIR=" + p.Dir})
	return runInProcess(t.Context(), env, append([]string{"roost"}, args...)...)
}

// timeKernels runs three tasks and returns how long that took.
func (p *Pool) timeKernels(t *testing.T, name, memory, script string) time.Duration {
	t.Helper()
	dir := t.TempDir()
	job := fmt.Sprintf("job %q {\n  count = 3\n  directory = %q\n  script = <<-END\n    %s\n  END\n  cpus = 1\n  "+
		"memory = \"64MiB\"\n  gpus = 1\n%s}\n",
		name, dir, strings.ReplaceAll(script, "\n", "\n    "), memory)
	file := filepath.Join(dir, "job.hcl")
	if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	if stdout, stderr, code := p.Command(ctx, "submit", file); code != 0 {
		t.Fatalf("submit: %s%s", stdout, stderr)
	}
	stdout, stderr, code := p.Command(ctx, "wait", "last")
	if code != 0 {
		show, _, _ := p.Command(t.Context(), "show", "last")
		why, _, _ := p.Command(t.Context(), "why", "last")
		t.Fatalf("%s ended with %d: %s%s\n%s\n%s", name, code, stdout, stderr, show, why)
	}
	return time.Since(start)
}

// TestGPUs runs all tests of a machine with a GPU on one pool.
func TestGPUs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p, m := startGPUPool(t)
	t.Run("sharing", func(t *testing.T) { testSharing(t, p) })
	t.Run("memory", func(t *testing.T) { testMemory(t, p, m) })
}

// testSharing checks that three tasks that need a third of a GPU each run at once. Three
// that need a whole one run one after the other, so sharing is faster (HRM, section 3.2).
// The test does not depend on the clock, and only prints the ratio: sharing tasks wait
// until they have seen each other, and the others take a lock that must be free.
func testSharing(t *testing.T, p *Pool) {
	const kernel = "sleep 1"
	whole := p.timeKernels(t, "whole", "", "mkdir lock || exit 9\n"+kernel+"\nrmdir lock")
	shared := p.timeKernels(t, "shared", "  gpu_memory = \"5GiB\"\n",
		"test \"$CUDA_VISIBLE_DEVICES\" = GPU-a || exit 8\ntouch seen.${task.index}\nwhile [ $(ls seen.* | wc "+
			"-l) -lt 3 ]; do sleep 0.02; done\n"+kernel)
	t.Logf("three tasks of one second on one card: %v when each takes it whole, %v when they share it by memory: "+
		"%.2f times as fast",
		whole.Round(time.Millisecond), shared.Round(time.Millisecond), float64(whole)/float64(shared))
}

// testMemory checks that a task that exceeds its GPU memory ends with a message that its
// user can act on.
func testMemory(t *testing.T, p *Pool, m *fakelib.FakeMachine) {
	dir := t.TempDir()
	if stdout, stderr, code := p.Command(t.Context(), "run", "--detach", "--gpus", "1", "--gpu-memory", "4GiB",
		"--memory", "64MiB", "--directory", dir, "--",
		"sh", "-c", "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"); code != 0 {
		t.Fatalf("run: %s%s", stdout, stderr)
	}
	p.awaitOutput(t, "running", "jobs", "--all")
	var pids []int
	// the shell must first become it by exec
	if !pollUntil(t.Context(), awaitTimeout, func() bool { pids = sleepingProcesses(dir); return len(pids) > 0 }) {
		t.Fatal("its process is not found")
	}
	m.Update(func(d *fakelib.MachineDescription) {
		d.Devices[0].UsedMemory = 6 * roost.GiB
		for _, pid := range pids {
			d.Processes = append(d.Processes, fakelib.DeviceProcess{DeviceUUID: "GPU-a", PID: pid,
				Memory: 6 * roost.GiB})
		}
	})
	got := p.awaitOutput(t, "gpu_memory", "show", "last")
	for _, want := range []string{"6GiB", "4GiB", "GPU 0", "sleep"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
	p.awaitOutput(t, "6/16 GiB", "nodes", "--gpus")
}

// sleepingProcesses returns the processes that sleep in a directory, by their ids in this
// process's namespace.
func sleepingProcesses(dir string) []int {
	var pids []int
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		cwd, _ := os.Readlink(filepath.Join(name, "cwd"))
		comm, _ := os.ReadFile(filepath.Join(name, "comm"))
		var pid int
		if fmt.Sscanf(filepath.Base(name), "%d", &pid); cwd == dir && string(comm) == "sleep\n" {
			pids = append(pids, pid)
		}
	}
	return pids
}
