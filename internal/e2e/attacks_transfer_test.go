package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
)

// TestHostileNodes has execute nodes, of which all but one are hostile, say and send what is not theirs to say. None of it touches what runs on the good one, comes
// to a user's directory, or ends the schedd; and users' tasks that write more than they may touch nobody else's there.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; hostile nodes are not tried")
	}
	h := bareHosts(t, special{tags: []string{"attacks"}})
	ca, all := filepath.Join(h.dir, "ca"), []string{"central", "submit"}
	for i, attacks := range [][]attack.Attack{nil, {attack.ExtraOutputs}, {attack.OtherAttempts, attack.RepeatedEnds}, {attack.OtherName}, {attack.LongMessages}} {
		name, address := fmt.Sprintf("exec%d", i+1), fmt.Sprintf("10.111.0.%d", 11+i)
		h.add(name, address, h.issue(ca, name, auth.Startd), func(n *config.Node) {
			d := config.Startd{Name: name, Listen: []string{address + ":9703"}}
			d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
			d.Limits.TaskOutput, d.Limits.TaskFiles = roost.MiB, 2000
			n.Startds = []config.Startd{d}
		}).attack = attacks
		all = append(all, name)
	}
	for _, name := range all {
		h.nodes[name].start()
	}
	h.await("all execute nodes", func() bool { return len(h.machines()) == len(all)-2 })
	victim := h.submit(on1("victim", `["sleep", "600"]`, "exec1")) // the first job, of which hostile nodes speak
	h.await("it runs", func() bool { return h.show(victim).State == "running" })
	for _, part := range []struct {
		name string
		run  func(*hosts)
	}{
		{"extra outputs", (*hosts).sendsExtraOutputs}, {"other attempts", (*hosts).speaksOfOthers}, {"other name", (*hosts).takesAName},
		{"long messages", (*hosts).saysTooMuch}, {"much output", (*hosts).writesTooMuch},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(h.in(t)) }) {
			h.tell()
			break
		}
		if now := h.show(victim); now.State != "running" || now.Attempt != 1 || now.Node != "exec1" {
			t.Fatalf("after %s: the task of another node is %+v", part.name, now)
		}
	}
	if said := h.nodes["submit"].said(); strings.Count(said, "msg=serving") != 1 {
		t.Errorf("the schedd did not live on:\n%s", said)
	}
	h.must("rm", victim)
}

// on1 is a job of one task for one node.
func on1(name, command, node string) string {
	return fmt.Sprintf("job %q {\n  command = %s\n  requirements = \"Machine == \\\"%s\\\"\"\n}", name, command, node)
}

// sendsExtraOutputs: a node that sends files that nobody has asked for brings none of them to the user's directory. Its attempts are not completed, the log says
// what came, and another node runs the tasks.
func (h *hosts) sendsExtraOutputs() {
	id := h.submit(`job "work" {
  script  = "echo $ROOST_NODE > result-$ROOST_TASK_INDEX.txt"
  outputs = ["result-*.txt"]
  count   = 4
  cpus    = 4
  requirements = "Machine == \"exec1\" || Machine == \"exec2\""
}`)
	h.await("its tasks are completed", func() bool { return strings.Contains(h.must("show", id), "completed") && len(h.results()) == 4 })
	if _, err := os.Lstat(filepath.Join(h.home, ".ssh")); !os.IsNotExist(err) || h.drafts(h.home) {
		h.Errorf("what nobody has asked for is in the user's directory: %v", err)
	}
	for _, name := range h.results() {
		if on := strings.TrimSpace(h.read(name)); on != "exec1" {
			h.Errorf("%s is of %s", name, on)
		}
	}
	h.logs(`level=WARN msg="a node did not send the output that was asked for"`, "node=exec2", "file=.ssh/authorized_keys", "nobody has asked for it")
}

// logs holds that the submit node has logged all of these.
func (h *hosts) logs(parts ...string) {
	h.Helper()
	for _, part := range parts {
		h.await("the submit node logs "+part, func() bool { return strings.Contains(h.nodes["submit"].said(), part) })
	}
}

// speaksOfOthers: a node tells of the attempts and claims of others, tells the ends of its own more than once and otherwise, and those of attempts to come.
func (h *hosts) speaksOfOthers() {
	for i := range 2 {
		id := h.submit(on1("own", `["sh", "-c", "exit 3"]`, "exec3"))
		h.await("its own task is over", func() bool { s := h.show(id).State; return s == "failed" || s == "completed" })
		if now := h.show(id); now.Exit.Code != 3 || now.Attempt != 1 {
			h.Errorf("job %d: %+v", i, now)
		}
	}
	h.logs("a node speaks of a checkpoint of a task that it does not have")
}

// takesAName: a node welcomes the schedd in the name of another.
func (h *hosts) takesAName() {
	id := h.submit(on1("named", `["true"]`, "exec4"))
	h.logs("node=exec4", "answers in its place")
	if now := h.show(id); now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.must("rm", id)
}

// saysTooMuch: a node sends a message of more bytes than are taken. The session with it ends, and its task goes where it is well.
func (h *hosts) saysTooMuch() {
	id := h.submit(on1("long", `["true"]`, "exec5"))
	h.logs(`level=WARN msg="session ended" daemon=schedd node=exec5`, "the message has 68157456 bytes, and 67108864 is the most")
	if now := h.show(id); now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.must("rm", id)
}

// writesTooMuch: users' tasks with endless output, and with more files than a task may have, end by themselves and touch nobody else's.
func (h *hosts) writesTooMuch() {
	for name, text := range map[string]string{
		"output": "head -c 10G /dev/zero",
		"names":  "seq -f %0250.0f 1 13000 | xargs touch", // more bytes than the end of an attempt may have
	} {
		id := h.submit(on1(name, fmt.Sprintf("[\"sh\", \"-c\", %q]", text), "exec1"))
		h.await(name+" is ended", func() bool { s := h.show(id).State; return s == "held" || s == "failed" })
		if now := h.show(id); now.Attempt != 1 || now.Exit.Cause != "disk" {
			h.Errorf("%s: %+v", name, now)
		}
		if stdout, _, _ := h.as(someone, "logs", id); len(stdout) > 2<<20 {
			h.Errorf("%s: %d bytes came", name, len(stdout))
		}
	}
}

// results are the files that came home.
func (h *hosts) results() (names []string) {
	found, _ := filepath.Glob(filepath.Join(h.home, "result-*.txt"))
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}
