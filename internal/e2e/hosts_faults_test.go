package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// submitGated submits a task that waits at a gate and then exits with a code. It runs on
// the given node, or any, and the function returns when it runs.
func (h *hostPool) submitGated(name, node string, lease string, code int) (id string, g *taskGate) {
	h.Helper()
	g = h.newGate(name)
	where := "true"
	if node != "" {
		where = fmt.Sprintf("TARGET.Name == \\\"%s\\\"", node)
	}
	id = h.submitJob(fmt.Sprintf(`job %q {
  script       = "%s; echo done >> %s; exit %d"
  requirements = "%s"
  lease        = %q
}`, name, g.wait, h.newTaskLog(name), code, where, lease))
	h.awaitTrue(name+" runs", func() bool { return h.showTask(id).State == "running" })
	return id, g
}

// newTaskLog creates a file beside the pool that tasks on all hosts can write to.
func (h *hostPool) newTaskLog(name string) string {
	path := filepath.Join(h.dir, "ledger-"+name)
	f, err := os.OpenFile(path, os.O_CREATE, 0o666)
	if err != nil {
		h.Fatal(err)
	}
	f.Close()
	os.Chmod(path, 0o666)
	return path
}

// awaitCompleted waits for a task and checks that its first attempt has completed, once
// and with that code.
func (h *hostPool) awaitCompleted(id, name string, code int) {
	h.Helper()
	h.awaitTrue(name+" ends", func() bool { return h.showTask(id).State == "failed" })
	got := h.showTask(id)
	if got.Exit.Code != code || got.Exit.Cause != "exited" || got.Attempt != 1 {
		h.Errorf("%s ended with code %d, cause %s, attempt %d; want %d, exited, 1", name, got.Exit.Code, got.Exit.Cause,
			got.Attempt, code)
	}
	if text, _ := os.ReadFile(h.newTaskLog(name)); string(text) != "done\n" {
		h.Errorf("%s wrote %q to its ledger", name, text)
	}
}

// linkIsCut checks that a task outlives a cut link for less than its lease.
func (h *hostPool) linkIsCut() {
	id, g := h.submitGated("cut", "exec1", "60s", 7)
	h.net.unplug("exec1")
	g.openGate()
	h.awaitTrue("the task has ended behind the cut", func() bool {
		text, _ := os.ReadFile(h.newTaskLog("cut"))
		return len(text) > 0
	})
	if got := h.showTask(id).State; got != "running" {
		h.Errorf("it is %s though its node is out of reach", got)
	}
	h.net.replug("exec1")
	h.awaitCompleted(id, "cut", 7)
}

// startdIsKilled checks that a task outlives its startd and is adopted by the next one.
func (h *hostPool) startdIsKilled() {
	id, g := h.submitGated("adopt", "exec1", "60s", 9)
	before := h.nodes["exec1"].daemonPID("startd")
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		h.Fatal(err)
	}
	h.awaitTrue("another startd serves", func() bool {
		now := h.nodes["exec1"].daemonPID("startd")
		return now != 0 && now != before
	})
	g.openGate()
	h.awaitCompleted(id, "adopt", 9)
}

// submitNodeIsKilled checks that tasks outlive the submit node's daemons.
func (h *hostPool) submitNodeIsKilled() {
	id, g := h.submitGated("submit", "exec1", "60s", 3)
	during, g2 := h.submitGated("submit-during", "exec2", "60s", 4)
	n := h.nodes["submit"]
	n.killMaster()
	g2.openGate() // it ends while no schedd runs
	n.start()
	g.openGate()
	h.awaitCompleted(id, "submit", 3)
	h.awaitCompleted(during, "submit-during", 4)
}

// centralIsDown stops the central manager. Running tasks continue, jobs are accepted, and
// they run when it is back.
func (h *hostPool) centralIsDown() {
	id, g := h.submitGated("central", "exec1", "60s", 5)
	n := h.nodes["central"]
	n.killMaster()
	g.openGate()
	h.awaitCompleted(id, "central", 5)
	// a claim that is kept has not so many cores, and runs it without a negotiator
	queued := h.submitJob("job \"queued\" {\n  command = [\"true\"]\n  cpus = 7\n}\n")
	h.awaitTrue("roost why speaks of the negotiator", func() bool {
		why, _, _ := h.runAs(someone, "why", queued)
		return strings.Contains(why, "negotiator, which cannot be reached")
	})
	if got := h.showTask(queued).State; got != "idle" {
		h.Errorf("the job is %s though nobody matches", got)
	}
	n.start()
	h.awaitTrue("the queued job ends", func() bool { return h.showTask(queued).State == "completed" })
}

// submitHeartbeat submits a task that writes a line to its log repeatedly until its gate
// is open. It can run anywhere.
func (h *hostPool) submitHeartbeat(name, node string) (b heartbeatAttempt) {
	var id string
	g := h.newGate(name)
	id = h.submitJob(fmt.Sprintf(`job %q {
  script = <<-END
    until echo "$ROOST_ATTEMPT $ROOST_NODE" >> %s; [ -e %s ]; do sleep 0.05; done
    exit 6
  END
  lease = "10s"
  rank  = "TARGET.Name == \"%s\""
}`, name, h.newTaskLog(name), g.path, node))
	h.awaitTrue(name+" runs on "+node, func() bool {
		now := h.showTask(id)
		b = heartbeatAttempt{id, g, now.Attempt}
		return now.State == "running" && now.Node == node
	})
	return b
}

// heartbeatAttempt is a running heartbeat task and its attempt. An earlier attempt may
// have met a claim that was just being released.
type heartbeatAttempt struct {
	id      string
	gate    *taskGate
	attempt int
}

// checkRestarted checks that a task runs again on another node. The attempt before must
// have written nothing from then on (P4).
func (h *hostPool) checkRestarted(b heartbeatAttempt, name, node string) {
	next := b.attempt + 1
	h.awaitTrue(name+" runs on "+node, func() bool {
		now := h.showTask(b.id)
		return now.Attempt == next && now.State == "running"
	})
	b.gate.openGate()
	h.awaitTrue(name+" ends", func() bool { return h.showTask(b.id).State == "failed" })
	if got := h.showTask(b.id); got.Exit.Code != 6 || got.Node != node || got.Attempt != next {
		h.Errorf("%s: attempt %d ended on %s with %d", name, got.Attempt, got.Node, got.Exit.Code)
	}
	text, _ := os.ReadFile(h.newTaskLog(name))
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
func (h *hostPool) starters(node string) (pids []int) {
	h.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		h.Fatal(err)
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		words := strings.Split(string(line), "\x00")
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && len(words) > 3 &&
			words[0] == "roost-starter" && strings.HasPrefix(words[1], h.nodes[node].dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopProcesses stops processes of a node, until the test ends or the result is called.
func (h *hostPool) stopProcesses(pids ...int) (goOn func()) {
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

// nodesAreLost checks a node that dies, and one that is cut off for longer than the
// lease. Their tasks run again on a node that has just joined. So does a task whose
// startd and starter are stopped: the kernel resumes the starter at the end of the lease.
func (h *hostPool) nodesAreLost() {
	dead := h.submitHeartbeat("dead", "exec2")
	stopped := h.submitHeartbeat("stopped", "exec1")
	starters := h.starters("exec1")
	if len(starters) == 0 {
		h.Fatal("exec1 has no starter")
	}
	cut := h.submitHeartbeat("cut-off", "exec1")
	goOn := h.stopProcesses(append(starters, h.nodes["exec1"].daemonPID("startd"))...)
	h.net.crashHost("exec2")
	h.net.unplug("exec1")
	h.addExecuteNode("exec3", "10.111.0.13",
		h.issueCertificate(filepath.Join(h.dir, "ca"), "exec3", peer.Startd)).start()
	h.checkRestarted(dead, "dead", "exec3")
	h.checkRestarted(cut, "cut-off", "exec3")
	h.checkRestarted(stopped, "stopped", "exec3")
	goOn()
	h.net.replug("exec1")
	h.awaitTrue("exec1 is back", func() bool { return slices.Contains(h.machineNames(), "exec1") })
}
