package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// machineOfProgramIsLost crashes a machine of an MPI gang. The processes on the others
// are ended, and the whole gang starts again once there are enough machines. The first
// attempt writes nothing from then on (P4).
func (h *hostPool) machineOfProgramIsLost() {
	pbsdsh := filepath.Join(h.home, "pbsdsh")
	if err := os.Symlink(h.roost, pbsdsh); err != nil {
		h.Fatal(err)
	}
	g := h.newGate("program")
	id := h.submitJob(fmt.Sprintf(`job "program" {
  script = <<-END
    %s -- sh -c 'while [ ! -e %s ]; do echo $ROOST_ATTEMPT $ROOST_NODE >> %s; sleep 0.05; done'
    exit 6
  END
  count = 2
  gang  = true
  led   = true
  apart = true
  lease = "10s"
}`, pbsdsh, g.path, h.newTaskLog("program")))
	attempt := 0
	wrote := func(n int) bool {
		text, _ := os.ReadFile(h.newTaskLog("program"))
		return strings.Contains(string(text), fmt.Sprintf("%d exec1\n", n)) &&
			strings.Contains(string(text), fmt.Sprintf("%d exec2\n", n))
	}
	h.awaitTrue("it runs on both machines", func() bool {
		attempt = h.showTask(id).Attempt
		return attempt > 0 && wrote(attempt)
	})
	h.net.crashHost("exec2")
	n := h.nodes["exec2"]
	<-n.done
	h.awaitTrue("it waits for another machine", func() bool { return h.showTask(id).State == "idle" })
	h.awaitTrue("nothing of it is left where its other part was", func() bool {
		return len(h.matchingProcesses("exec1", g.path)) == 0
	})
	n.start()
	h.awaitTrue("it runs on both machines again", func() bool { return wrote(attempt + 1) })
	g.openGate()
	h.awaitTrue("it ends", func() bool { return h.showTask(id).State == "failed" })
	if got := h.showTask(id); got.Exit.Code != 6 || got.Attempt != attempt+1 {
		h.Errorf("attempt %d ended with %d; want %d and 6", got.Attempt, got.Exit.Code, attempt+1)
	}
	text, _ := os.ReadFile(h.newTaskLog("program"))
	latest := 0
	for line := range strings.Lines(string(text)) {
		var of int
		fmt.Sscan(line, &of)
		if of < latest {
			h.Fatalf("P4: %q after attempt %d had begun", line, latest)
		}
		latest = max(latest, of)
	}
}

// matchingProcesses lists the processes on a host whose command line contains a text.
func (h *hostPool) matchingProcesses(host, text string) (list []int) {
	for _, pid := range namespaceProcesses(h.net.namespaceName(host)) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), text) && syscall.Kill(pid, 0) == nil {
			list = append(list, pid)
		}
	}
	return list
}
