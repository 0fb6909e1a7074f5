package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// allocPool is a pool with an alloc set, and two services inside.
type allocPool struct {
	*testing.T
	ctx  context.Context
	pool *Pool
	dir  string
	ids  []string // of the set, the servers and the log savers
}

const allocJobs = `alloc "web" {
  count  = 2
  cpus   = 0.5
  memory = "200MiB"
}

job "server" {
  in     = alloc.web
  count  = 2
  cpus   = 0.2
  memory = "64MiB"
  notice = "20s"
  script = <<-EOS
    trap 'echo leaving; exit 0' TERM
    cat /proc/self/cgroup
    echo started
    while :; do sleep 0.1; done
  EOS
  service {}
}

job "saver" {
  in     = alloc.web
  count  = 2
  cpus   = 0.1
  memory = "64MiB"
  script = <<-EOS
    cat /proc/self/cgroup
    echo started
    while :; do sleep 0.1; done
  EOS
  service {}
}
`

// TestAllocs has two services run inside an alloc set, and later a job of its own. All of
// them end with the set.
func TestAllocs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	pool := smallPool(t)
	a := &allocPool{T: t, ctx: ctx, pool: pool, dir: t.TempDir()}
	stdout, stderr, code := a.submit("web", allocJobs)
	if a.ids = strings.Fields(stdout); code != 0 || len(a.ids) != 3 {
		t.Fatalf("submit: %d, %s %s", code, stdout, stderr)
	}
	a.must("wait", "--ready", "--timeout", "1m", a.ids[1], a.ids[2])
	a.checkGroups()
	a.submitInside()
	a.change()
	a.remove()
}

// submit submits the text of a job file.
func (a *allocPool) submit(name, text string) (stdout, stderr string, code int) {
	a.Helper()
	file := filepath.Join(a.dir, name+".hcl")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	return a.pool.Command(a.ctx, "submit", file)
}

// must runs a command that has to succeed.
func (a *allocPool) must(args ...string) string {
	a.Helper()
	stdout, stderr, code := a.pool.Command(a.ctx, args...)
	if code != 0 {
		a.Fatalf("roost %s: %d, %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// groupOf returns the control group of the alloc inside which a task is; empty where
// there are none.
func (a *allocPool) groupOf(job string, index int) string {
	a.Helper()
	seq, host, _ := strings.Cut(job, ".")
	task := fmt.Sprintf("%s[%d].%s", seq, index, host)
	text := ""
	for ; !strings.Contains(text, "started"); text = a.must("logs", task) {
		select {
		case <-a.ctx.Done():
			a.Fatalf("%s has not started: %s", task, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for line := range strings.Lines(text) {
		_, path, found := strings.Cut(strings.TrimSpace(line), ":/roost")
		if found {
			alloc, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/run")
			return filepath.Dir(strings.TrimSuffix(alloc, "/task"))
		}
	}
	return ""
}

// checkGroups checks that tasks of one index are inside the control group of one alloc.
func (a *allocPool) checkGroups() {
	a.Helper()
	server, saver := a.groupOf(a.ids[1], 0), a.groupOf(a.ids[2], 0)
	if server == "" {
		a.Log("control groups inside others are NOT tested: this machine has none for tasks")
		return
	}
	if server != saver || len(strings.Split(server, "/")) < 2 {
		a.Errorf("the first server is inside %q, and its log saver inside %q", server, saver)
	}
	if other := a.groupOf(a.ids[1], 1); other == server {
		a.Errorf("both servers are inside %q", other)
	}
}

// submitInside submits into the set that is there.
func (a *allocPool) submitInside() {
	a.Helper()
	const job = "job \"late\" {\n  in = %q\n  place = \"any\"\n  count = 3\n  cpus = %v\n  memory = \"64MiB\"\n" +
		"  command = [\"true\"]\n}\n"
	stdout, stderr, code := a.submit("late", fmt.Sprintf(job, a.ids[0], 0.2))
	if code != 0 {
		a.Fatalf("submit into %s: %s", a.ids[0], stderr)
	}
	a.must("wait", "--timeout", "1m", strings.TrimSpace(stdout))
	_, stderr, code = a.submit("large", fmt.Sprintf(job, a.ids[0], 1))
	if !strings.Contains(stderr, "it asks for 1 cores, and the alloc has 0.5") {
		a.Errorf("more than an alloc has: %d, %s", code, stderr)
	}
}

// change lists the set and changes it in each way that roost alloc knows.
func (a *allocPool) change() {
	a.Helper()
	if text := a.must("alloc"); strings.Count(text, "open") != 2 || !strings.Contains(text, "0.3/0.5") {
		a.Errorf("the allocs are %s", text)
	}
	a.must("alloc", "resize", "--cpus", "0.6", a.ids[0])
	a.await("larger allocs", func() bool { return strings.Count(a.must("alloc"), "0.3/0.6") == 2 })
	a.must("alloc", "allow", a.ids[0], "somebody", "else@n7")
	a.must("alloc", "deny", a.ids[0], "else@n7")
	if text := a.must("show", a.ids[0]); !strings.Contains(text, "also for    somebody") {
		a.Errorf("the set shows %s", text)
	}
	if _, stderr, code := a.pool.Command(a.ctx, "alloc", "rm", a.ids[0]); code == 0 ||
		!strings.Contains(stderr, "--with-tasks") {
		a.Errorf("a set with jobs inside: %d, %s", code, stderr)
	}
	stdout, stderr, code := a.submit("leaves", "job \"leaves\" {\n  in = \""+a.ids[0]+"\"\n  hold = true\n"+
		"  memory = \"64MiB\"\n  cpus = 0.1\n  command = [\"true\"]\n}\n")
	if code != 0 {
		a.Fatalf("submit: %s", stderr)
	}
	id := strings.TrimSpace(stdout)
	a.must("alloc", "leave", id)
	a.must("release", id)
	a.must("wait", "--timeout", "1m", id)
	if text := a.must("show", id); strings.Contains(text, "alloc set") {
		a.Errorf("the job that has left shows %s", text)
	}
}

// remove removes the set, and checks that what is inside has ended as it should.
func (a *allocPool) remove() {
	a.Helper()
	a.must("rm", a.ids[0])
	for _, id := range a.ids {
		if _, stderr, _ := a.pool.Command(a.ctx, "wait", "--timeout", "1m", id); a.ctx.Err() != nil {
			a.Fatalf("%s does not end: %s", id, stderr)
		}
	}
	seq, host, _ := strings.Cut(a.ids[1], ".")
	if text := a.must("logs", fmt.Sprintf("%s[0].%s", seq, host)); !strings.Contains(text, "leaving") {
		a.Errorf("the server was not asked to end: %s", text)
	}
	if text := a.must("show", a.ids[2]); !strings.Contains(text, "its alloc "+a.ids[0]+" was removed") {
		a.Errorf("the log saver says %s", text)
	}
}
