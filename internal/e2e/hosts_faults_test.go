package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/auth"
)

// waiting submits a task that waits at a gate on a node, or any node, and then exits with a code; it returns when it runs.
func (h *hosts) waiting(name, node string, lease string, code int) (id string, g *gate) {
	h.Helper()
	g = h.gate(name)
	where := "true"
	if node != "" {
		where = fmt.Sprintf("TARGET.Name == \\\"%s\\\"", node)
	}
	id = h.submit(fmt.Sprintf(`job %q {
  script       = "%s; echo done >> %s; exit %d"
  requirements = "%s"
  lease        = %q
}`, name, g.wait, h.ledger(name), code, where, lease))
	h.await(name+" runs", func() bool { return h.show(id).State == "running" })
	return id, g
}

// ledger is a file beside the pool to which tasks on all hosts can write.
func (h *hosts) ledger(name string) string {
	path := filepath.Join(h.dir, "ledger-"+name)
	f, err := os.OpenFile(path, os.O_CREATE, 0o666)
	if err != nil {
		h.Fatal(err)
	}
	f.Close()
	os.Chmod(path, 0o666)
	return path
}

// ended waits for a task and checks that its first attempt has completed, once and with that code.
func (h *hosts) ended(id, name string, code int) {
	h.Helper()
	h.await(name+" ends", func() bool { return h.show(id).State == "failed" })
	got := h.show(id)
	if got.Exit.Code != code || got.Exit.Cause != "exited" || got.Attempt != 1 {
		h.Errorf("%s ended with code %d, cause %s, attempt %d; want %d, exited, 1", name, got.Exit.Code, got.Exit.Cause, got.Attempt, code)
	}
	if text, _ := os.ReadFile(h.ledger(name)); string(text) != "done\n" {
		h.Errorf("%s wrote %q to its ledger", name, text)
	}
}

// A task outlives a cable that is pulled for less than its lease.
func (h *hosts) linkIsCut() {
	id, g := h.waiting("cut", "exec1", "60s", 7)
	h.net.cut("exec1")
	g.open()
	h.await("the task has ended behind the cut", func() bool {
		text, _ := os.ReadFile(h.ledger("cut"))
		return len(text) > 0
	})
	if got := h.show(id).State; got != "running" {
		h.Errorf("it is %s though its node is out of reach", got)
	}
	h.net.mend("exec1")
	h.ended(id, "cut", 7)
}

// A task outlives its startd and is adopted by the next.
func (h *hosts) startdIsKilled() {
	id, g := h.waiting("adopt", "exec1", "60s", 9)
	before := h.nodes["exec1"].daemon("startd")
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		h.Fatal(err)
	}
	h.await("another startd serves", func() bool { now := h.nodes["exec1"].daemon("startd"); return now != 0 && now != before })
	g.open()
	h.ended(id, "adopt", 9)
}

// Tasks outlive the submit node's daemons.
func (h *hosts) submitNodeIsKilled() {
	id, g := h.waiting("submit", "exec1", "60s", 3)
	during, g2 := h.waiting("submit-during", "exec2", "60s", 4)
	n := h.nodes["submit"]
	n.kill()
	g2.open() // ends while nobody listens
	n.start()
	g.open()
	h.ended(id, "submit", 3)
	h.ended(during, "submit-during", 4)
}

// Without a central manager what runs goes on, jobs are accepted, and they are run when it is back.
func (h *hosts) centralIsDown() {
	id, g := h.waiting("central", "exec1", "60s", 5)
	n := h.nodes["central"]
	n.kill()
	g.open()
	h.ended(id, "central", 5)
	queued := h.submit(`job "queued" { command = ["true"] }`)
	h.await("roost why speaks of the negotiator", func() bool {
		why, _, _ := h.as(someone, "why", queued)
		return strings.Contains(why, "negotiator, which cannot be reached")
	})
	if got := h.show(queued).State; got != "idle" {
		h.Errorf("the job is %s though nobody matches", got)
	}
	n.start()
	h.await("the queued job ends", func() bool { return h.show(queued).State == "completed" })
}

// beats submits a task that writes a line to its ledger again and again, until its gate is open, and can run anywhere.
func (h *hosts) beats(name, node string) (b beating) {
	var id string
	g := h.gate(name)
	id = h.submit(fmt.Sprintf(`job %q {
  script = <<-END
    while [ ! -e %s ]; do echo "$ROOST_ATTEMPT $ROOST_NODE" >> %s; sleep 0.05; done
    exit 6
  END
  lease = "10s"
  rank  = "TARGET.Name == \"%s\""
}`, name, g.path, h.ledger(name), node))
	h.await(name+" runs on "+node, func() bool {
		now := h.show(id)
		b = beating{id, g, now.Attempt}
		return now.State == "running" && now.Node == node
	})
	return b
}

// beating is a task that beats runs, and its attempt: one before it may have met a claim that was just being given back.
type beating struct {
	id      string
	gate    *gate
	attempt int
}

// again checks that a task runs once more on another node, and that nothing was heard of the attempt before from then on (P4).
func (h *hosts) again(b beating, name, node string, limit time.Duration) {
	next := b.attempt + 1
	h.awaitFor(limit, name+" runs on "+node, func() bool { now := h.show(b.id); return now.Attempt == next && now.State == "running" })
	b.gate.open()
	h.await(name+" ends", func() bool { return h.show(b.id).State == "failed" })
	if got := h.show(b.id); got.Exit.Code != 6 || got.Node != node || got.Attempt != next {
		h.Errorf("%s: attempt %d ended on %s with %d", name, got.Attempt, got.Node, got.Exit.Code)
	}
	text, _ := os.ReadFile(h.ledger(name))
	second := false
	for line := range strings.Lines(string(text)) {
		isSecond := line == fmt.Sprintf("%d %s\n", next, node)
		if second && !isSecond {
			h.Fatalf("P4: %s: %q after the next attempt had begun", name, line)
		}
		second = second || isSecond
	}
	if !second {
		h.Errorf("%s: the second attempt wrote nothing in\n%s", name, text)
	}
}

// starters lists the starters of a node.
func (h *hosts) starters(node string) (pids []int) {
	h.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		h.Fatal(err)
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		words := strings.Split(string(line), "\x00")
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && len(words) > 3 && words[0] == "roost-starter" && strings.HasPrefix(words[1], h.nodes[node].dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// still stops processes of a node, until the test ends or f is called.
func (h *hosts) still(pids ...int) (goOn func()) {
	h.Helper()
	signal := func(s syscall.Signal) {
		for _, pid := range pids {
			syscall.Kill(pid, s)
		}
	}
	signal(syscall.SIGSTOP)
	goOn = func() { signal(syscall.SIGCONT) }
	h.Cleanup(goOn)
	return goOn
}

// A node that dies loses its task, and one that is cut off for longer than the lease kills it: both run again on a node that has just joined. So does a task whose
// startd and starter are stopped: the kernel lets the starter go on when the lease is over.
func (h *hosts) nodesAreLost() {
	dead := h.beats("dead", "exec2")
	stopped := h.beats("stopped", "exec1")
	starters := h.starters("exec1")
	if len(starters) == 0 {
		h.Fatal("exec1 has no starter")
	}
	cut := h.beats("cut-off", "exec1")
	goOn := h.still(append(starters, h.nodes["exec1"].daemon("startd"))...)
	h.net.crash("exec2")
	h.net.cut("exec1")
	h.execute("exec3", "10.111.0.13", h.issue(filepath.Join(h.dir, "ca"), "exec3", auth.Startd)).start()
	h.again(dead, "dead", "exec3", 30*time.Second)
	h.again(cut, "cut-off", "exec3", 40*time.Second)
	h.again(stopped, "stopped", "exec3", 40*time.Second)
	goOn()
	h.net.mend("exec1")
	h.await("exec1 is back", func() bool { return slices.Contains(h.machines(), "exec1") })
}
