package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

const resizeJobs = `alloc "web" {
  count  = 1
  cpus   = 0.5
  memory = "200MiB"
}

job "inside" {
  in     = alloc.web
  cpus   = 0.3
  memory = "64MiB"
  script = "cat /proc/self/cgroup; echo started; while :; do sleep 0.1; done"
  service {}
}

job "hub" {
  count  = 2
  cpus   = 0.2
  memory = "100MiB"
  script = "cat /proc/self/cgroup; echo started; while :; do sleep 0.1; done"
  service {}
  update {
    settle = "1s"
  }
}
`

// TestResize makes a service and an alloc larger and smaller while they run. The kernel's
// limits follow, and no task is started again.
func TestResize(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	pool := smallPool(t)
	a := &allocPool{T: t, ctx: ctx, pool: pool, dir: t.TempDir()}
	stdout, stderr, code := a.submit("web", resizeJobs)
	if a.ids = strings.Fields(stdout); code != 0 || len(a.ids) != 3 {
		t.Fatalf("submit: %d, %s %s", code, stdout, stderr)
	}
	a.must("wait", "--ready", "--timeout", "1m", a.ids[1], a.ids[2])
	a.groupOf(a.ids[2], 0) // it runs
	_, group, _ := strings.Cut(a.must("logs", task(a.ids[2], 0)), ":/roost/")
	group, _, _ = strings.Cut(strings.Fields(group + " none")[0], "/task")
	for _, memory := range []string{"150MiB", "80MiB"} {
		text := a.resize("update", strings.Replace(resizeJobs, "100MiB", memory, 1), "--wait")
		if !strings.Contains(text, "where it runs") {
			t.Errorf("the update says %q", text)
		}
		a.expectMemory(group, memory)
	}
	if text := a.must("show", a.ids[2]); strings.Count(text, "resized") != 4 {
		t.Errorf("the events are %s", text)
	}
	if got := a.must("logs", "--attempt", "1", task(a.ids[2], 0)); strings.Count(got, "started") != 1 {
		t.Errorf("the first task was started again: %s", got)
	}
	larger := strings.Replace(strings.Replace(resizeJobs, "0.5", "0.9", 1), "200MiB", "300MiB", 1)
	a.resize("update", strings.Replace(larger, "100MiB", "80MiB", 1))
	a.await("a larger alloc", func() bool {
		return strings.Contains(a.must("show", a.ids[0]), "resized    0.9 cores and 300MiB of memory, before 0.5")
	})
	if _, stderr, code := a.submit("late", "job \"late\" {\n in = \""+a.ids[0]+"\"\n place = \"any\"\n cpus = 0.6\n"+
		" memory = \"64MiB\"\n command = [\"true\"]\n}\n"); code != 0 {
		t.Errorf("what fits into the larger alloc is refused: %s", stderr)
	}
	small := strings.Replace(larger, "0.9", "0.2", 1)
	if _, stderr, code := a.tryUpdate("small", small); code == 0 ||
		!strings.Contains(stderr, "is too small for this job") {
		t.Errorf("an alloc smaller than what is inside: %d, %s", code, stderr)
	}
}

// await waits until something is so.
func (a *allocPool) await(what string, is func() bool) {
	a.Helper()
	for !is() {
		select {
		case <-a.ctx.Done():
			a.Fatalf("%s: %s", what, a.must("why", task(a.ids[0], 0)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// task is a task of a job by its index.
func task(job string, index int) string {
	seq, host, _ := strings.Cut(job, ".")
	return seq + "[" + strconv.Itoa(index) + "]." + host
}

// tryUpdate updates the jobs by the text of a job file.
func (a *allocPool) tryUpdate(name, text string, flags ...string) (stdout, stderr string, code int) {
	a.Helper()
	file := filepath.Join(a.dir, name+".hcl")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	return a.pool.Command(a.ctx, append(append([]string{"update"}, flags...), file)...)
}

// resize is tryUpdate that has to succeed.
func (a *allocPool) resize(name, text string, flags ...string) string {
	a.Helper()
	stdout, stderr, code := a.tryUpdate(name, text, flags...)
	if code != 0 {
		a.Fatalf("update: %d, %s %s", code, stdout, stderr)
	}
	return stdout
}

// expectMemory checks what the kernel allows a task, with what its starter has beside it.
func (a *allocPool) expectMemory(group, memory string) {
	a.Helper()
	mib, _ := strconv.Atoi(strings.TrimSuffix(memory, "MiB"))
	want := strconv.Itoa((mib + 8) * int(roost.MiB))
	for _, path := range []string{"/sys/fs/cgroup/memory/roost/" + group + "/memory.limit_in_bytes",
		"/sys/fs/cgroup/roost/" + group + "/memory.max"} {
		if text, err := os.ReadFile(path); err == nil {
			if got := strings.TrimSpace(string(text)); got != want {
				a.Errorf("%s: got %s, want %s", path, got, want)
			}
			return
		}
	}
	a.Log("the kernel's limits are NOT tested: this machine has none for tasks")
}
