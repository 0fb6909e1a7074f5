package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// TestHostileNodes lets all execute nodes but one report and send what they may not. No
// attack may affect the tasks of the honest node, write to a user's directory, or end the
// schedd. Users' tasks that write more than they may must not affect others.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; hostile nodes are not tried")
	}
	h := bareHosts(t, hostPoolOptions{tags: []string{"attacks"}})
	ca, all := filepath.Join(h.dir, "ca"), []string{"central", "submit"}
	for i, attacks := range [][]attack.AttackKind{nil, {attack.ExtraOutputs},
		{attack.ForeignAttempts, attack.RepeatedEnds}, {attack.ForeignName}, {attack.OversizedMessages}} {
		name, address := fmt.Sprintf("exec%d", i+1), fmt.Sprintf("10.111.0.%d", 11+i)
		h.addHost(name, address, h.issueCertificate(ca, name, peer.Startd), func(n *config.Node) {
			d := config.StartdSettings{Name: name, Listen: []string{address + ":9703"}}
			d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
			d.Limits.TaskOutput, d.Limits.TaskFiles = roost.MiB, 2000
			n.Startds = []config.StartdSettings{d}
		}).attackName = attacks
		all = append(all, name)
	}
	for _, name := range all {
		h.nodes[name].start()
	}
	h.awaitTrue("all execute nodes", func() bool { return len(h.machineNames()) == len(all)-2 })
	// the first job, which hostile nodes refer to
	victim := h.submitJob(singleTaskOn("victim", `["sleep", "600"]`, "exec1"))
	h.awaitTrue("it runs", func() bool { return h.showTask(victim).State == "running" })
	for _, part := range []struct {
		name string
		run  func(*hostPool)
	}{
		{"extra outputs", (*hostPool).sendsExtraOutputs}, {"other attempts", (*hostPool).reportsForeignTasks},
		{"other name", (*hostPool).usesAnothersName},
		{"long messages", (*hostPool).sendsOversizedMessage}, {"much output", (*hostPool).writesEndlessOutput},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(h.forSubtest(t)) }) {
			h.printLogs()
			break
		}
		if now := h.showTask(victim); now.State != "running" || now.Attempt != 1 || now.Node != "exec1" {
			t.Fatalf("after %s: the task of another node is %+v", part.name, now)
		}
	}
	if answer := h.nodes["submit"].logText(); strings.Count(answer, "msg=serving") != 1 {
		t.Errorf("the schedd did not live on:\n%s", answer)
	}
	h.mustAs("rm", victim)
}

// singleTaskOn returns a job of one task for one node.
func singleTaskOn(name, command, node string) string {
	return fmt.Sprintf("job %q {\n  command = %s\n  requirements = \"Machine == \\\"%s\\\"\"\n}", name, command, node)
}

// sendsExtraOutputs checks that files that nobody requested do not reach the user's
// directory. The node's attempts are not completed, the log says what came, and another
// node runs the tasks.
func (h *hostPool) sendsExtraOutputs() {
	id := h.submitJob(`job "work" {
  script  = "echo $ROOST_NODE > result-$ROOST_TASK_INDEX.txt"
  outputs = ["result-*.txt"]
  count   = 4
  cpus    = 4
  requirements = "Machine == \"exec1\" || Machine == \"exec2\""
}`)
	h.awaitTrue("its tasks are completed", func() bool {
		return strings.Contains(h.mustAs("show", id), "completed") && len(h.outputFiles()) == 4
	})
	if _, err := os.Lstat(filepath.Join(h.home, ".ssh")); !os.IsNotExist(err) || h.hasPartialFile(h.home) {
		h.Errorf("what nobody has asked for is in the user's directory: %v", err)
	}
	for _, name := range h.outputFiles() {
		if on := strings.TrimSpace(h.readOutputFile(name)); on != "exec1" {
			h.Errorf("%s is of %s", name, on)
		}
	}
	h.expectLogged(`level=WARN msg="a node did not send the output that was asked for"`, "node=exec2",
		"file=.ssh/authorized_keys", "nobody has asked for it")
}

// expectLogged checks that the submit node has logged all of these texts.
func (h *hostPool) expectLogged(parts ...string) {
	h.Helper()
	for _, part := range parts {
		h.awaitTrue("the submit node logs "+part, func() bool {
			return strings.Contains(h.nodes["submit"].logText(), part)
		})
	}
}

// reportsForeignTasks checks a node that reports attempts and claims of others. It also
// reports ends of its own attempts twice and differently, and ends of future attempts.
func (h *hostPool) reportsForeignTasks() {
	for i := range 2 {
		id := h.submitJob(singleTaskOn("own", `["sh", "-c", "exit 3"]`, "exec3"))
		h.awaitTrue("its own task is over", func() bool {
			s := h.showTask(id).State
			return s == "failed" || s == "completed"
		})
		if now := h.showTask(id); now.Exit.Code != 3 || now.Attempt != 1 {
			h.Errorf("job %d: %+v", i, now)
		}
	}
	h.expectLogged("a node speaks of a checkpoint of a task that it does not have")
}

// usesAnothersName checks a node that welcomes the schedd in another node's name.
func (h *hostPool) usesAnothersName() {
	id := h.submitJob(singleTaskOn("named", `["true"]`, "exec4"))
	h.expectLogged("node=exec4", "answers in its place")
	if now := h.showTask(id); now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.mustAs("rm", id)
}

// sendsOversizedMessage checks a node that sends a message of more bytes than are
// accepted. Its session ends, and its task runs elsewhere.
func (h *hostPool) sendsOversizedMessage() {
	id := h.submitJob(singleTaskOn("long", `["true"]`, "exec5"))
	h.expectLogged(`level=WARN msg="session ended" daemon=schedd node=exec5`,
		"the message has 68157456 bytes, and 67108864 is the most")
	if now := h.showTask(id); now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.mustAs("rm", id)
}

// writesEndlessOutput checks tasks with endless output or too many files. They must end
// without affecting others.
func (h *hostPool) writesEndlessOutput() {
	for name, text := range map[string]string{
		"output": "head -c 10G /dev/zero",
		"names":  "seq -f %0250.0f 1 13000 | xargs touch", // more bytes than the end of an attempt may have
	} {
		id := h.submitJob(singleTaskOn(name, fmt.Sprintf("[\"sh\", \"-c\", %q]", text), "exec1"))
		h.awaitTrue(name+" is ended", func() bool { s := h.showTask(id).State; return s == "held" || s == "failed" })
		if now := h.showTask(id); now.Attempt != 1 || now.Exit.Cause != "disk" {
			h.Errorf("%s: %+v", name, now)
		}
		if stdout, _, _ := h.runAs(someone, "logs", id); len(stdout) > 2<<20 {
			h.Errorf("%s: %d bytes came", name, len(stdout))
		}
	}
}

// outputFiles returns the output files at the submit side.
func (h *hostPool) outputFiles() (names []string) {
	found, _ := filepath.Glob(filepath.Join(h.home, "result-*.txt"))
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}
