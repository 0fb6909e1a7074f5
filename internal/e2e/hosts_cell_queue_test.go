package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// cellQueueName is the name of the pool and so of its queue.
const cellQueueName = "physics"

// TestCellQueue has the central managers keep a queue. A user submits to it from another
// node. Its jobs and updates outlive the leader and the submit node, and running tasks
// are not disturbed.
func TestCellQueue(t *testing.T) {
	t.Parallel()
	h := makeCellQueue(t)
	h.startAll()
	h.awaitTrue("the queue of the cell", func() bool { return h.queueLeader() != "" })
	ids := strings.Fields(h.submitToQueue("outlives", `while [ ! -e `+filepath.Join(h.home, "release")+` ]; do sleep 0.1; done`, 3))
	if len(ids) != 1 || !strings.HasSuffix(ids[0], "."+cellQueueName) {
		t.Fatalf("submitted: %q", ids)
	}
	h.awaitTrue("three tasks run", func() bool { return h.runningInQueue(ids[0]) == 3 })
	for _, kill := range []string{"the leader", "the submit node", "the next leader"} {
		at := time.Now()
		killed, daemon := "submit", "schedd"
		if kill != "the submit node" {
			killed, daemon = h.queueLeader(), "cell-queue"
		}
		h.nodes[killed].killMaster()
		if kill != "the submit node" {
			h.awaitTrue("another leader", func() bool {
				now := h.queueLeader()
				return now != "" && now != killed
			})
		}
		took := time.Since(at).Round(time.Millisecond)
		t.Logf("%s (%s) was killed; the queue acts again after %v", kill, killed, took)
		h.nodes[killed].start()
		h.awaitTrue(killed+" is back", func() bool { return h.nodes[killed].daemonPID(daemon) != 0 })
		h.awaitTrue("the tasks of before run", func() bool { return h.runningInQueue(ids[0]) == 3 })
	}
	h.usersActInQueue()
	again := strings.TrimSpace(h.submitToQueue("next", "true", 1))
	h.writeUserFile("release", "", 0o644)
	h.awaitTrue("the jobs end", func() bool {
		return h.countInQueue(ids[0], "completed") == 3 && h.countInQueue(again, "completed") == 1
	})
	for index := range 3 {
		id := fmt.Sprintf("%s[%d].%s", strings.TrimSuffix(ids[0], "."+cellQueueName), index, cellQueueName)
		if r := h.showTask(id); r.Attempt != 1 || r.State != "completed" {
			t.Errorf("task %s: %+v", id, r)
		}
	}
	h.updateOutlivesLeaders()
}

// usersActInQueue has a user act on a job of the queue from a submit node, and another
// user try to.
func (h *cellHostPool) usersActInQueue() {
	id := strings.TrimSpace(h.submitToQueue("own", "echo written; sleep 1000", 1))
	h.awaitTrue("the output of a job in the queue", func() bool {
		stdout, _, code := h.runAs(someone, "logs", id)
		return code == 0 && stdout == "written\n"
	})
	stdout, stderr, code := h.runAs(someone, "ssh", id, "/bin/sh", "-c", "echo entered; exit 3")
	if code != 3 || stdout != "entered\n" {
		h.Errorf("ssh into a task of the queue: %d, %q, %s", code, stdout, stderr)
	}
	if _, stderr, code = h.runAs(commandUser{12346, 12346}, "ssh", id); code == 0 ||
		!strings.Contains(stderr, "only its owner") {
		h.Errorf("another user enters a task of the queue: %d, %s", code, stderr)
	}
	for _, args := range [][]string{{"top", "--once"}, {"words", "--", "show", ""}} {
		task := strings.Replace(id, ".", "[0].", 1) // as top names the tasks of a job
		if out := h.mustAs(args...); !strings.Contains(out, id) && !strings.Contains(out, task) {
			h.Errorf("roost %s does not know job %s of the queue:\n%s", args[0], id, out)
		}
	}
	for _, verb := range []string{"hold", "rm", "logs"} {
		_, stderr, code := h.runAs(commandUser{12346, 12346}, verb, id)
		if code == 0 || !strings.Contains(stderr, "lacks the capability") {
			h.Errorf("another user's %s: %d, %s", verb, code, stderr)
		}
	}
	h.mustAs("hold", id)
	h.awaitTrue("it is held", func() bool { return h.countInQueue(id, "held") == 1 })
	h.mustAs("release", id)
	h.administratorActsInQueue(id)
	h.mustAs("rm", id)
	if _, stderr, code = h.runAs(someone, "wait", id); code == 0 || !strings.Contains(stderr, "1 of 1 task done") {
		h.Errorf("wait for a removed job of the queue: %d, %s", code, stderr)
	}
	h.servicesChooseQueue()
	h.runLargeScript()
	h.runStoredFiles()
}

// administratorActsInQueue has a user with the capability hold and release a job of
// somebody else. Without the capability that is refused. The job's events name the
// administrator.
func (h *cellHostPool) administratorActsInQueue(id string) {
	admin := commandUser{12346, 12346}
	h.administer("central1", "admin", "give", "--force", "12346@submit", "jobs")
	h.awaitTrue("an administrator holds a job in the queue", func() bool {
		_, _, code := h.runAs(admin, "hold", id)
		return code == 0
	})
	h.awaitTrue("it is held", func() bool { return h.countInQueue(id, "held") == 1 })
	if _, stderr, code := h.runAs(admin, "release", id); code != 0 {
		h.Errorf("an administrator releases a job in the queue: %d, %s", code, stderr)
	}
	h.awaitTrue("the administrator reads its output", func() bool {
		stdout, _, code := h.runAs(admin, "logs", id)
		return code == 0 && stdout == "written\n"
	})
	if out := h.mustAs("show", "--events", "0", id); !strings.Contains(out, "by 12346@submit") {
		h.Errorf("roost show does not name the administrator:\n%s", out)
	}
	h.administer("central1", "admin", "rm", "12346@submit")
	h.awaitTrue("the capability is gone", func() bool {
		_, stderr, code := h.runAs(admin, "hold", id)
		return code != 0 && strings.Contains(stderr, "lacks the capability")
	})
}

// runStoredFiles submits jobs whose files are stored. They need no directory of the
// submit node: it is gone before they run. Their output is got on another node.
func (h *cellHostPool) runStoredFiles() {
	text := strings.Repeat("a line of input\n", 100<<10)
	var inputs []string
	for i := range 2 {
		inputs = append(inputs, h.writeUserFile(fmt.Sprint("input", i), fmt.Sprint(i, "\n", text), 0o600))
	}
	path := h.writeUserFile("stored.hcl", "job \"stored\" {\n  count = 2\n  memory = \"10MiB\"\n  hold = true\n"+
		"  transfer = \"store\"\n  inputs = { \"in\" = \"input${task.index}\" }\n  outputs = [\"result\", \"sub\"]\n"+
		"  script = \"#!/bin/sh\\nhead -n 1 in; mkdir sub; cp in sub/copy; wc -c < in > result; echo e >&2\\n\"\n}\n",
		0o600)
	if _, stderr, code := h.runAs(someone, "submit", "--local", path); code == 0 ||
		!strings.Contains(stderr, "submit it with --cell") {
		h.Errorf("stored files in the queue of a node: %d, %s", code, stderr)
	}
	id := strings.TrimSpace(h.mustAs("submit", "--quiet", "--cell", path))
	for _, input := range inputs {
		if err := os.Remove(input); err != nil {
			h.Fatal(err)
		}
	}
	h.mustAs("release", id)
	if _, stderr, code := h.runAs(someone, "wait", id); code != 0 {
		h.Errorf("a job with stored files: %d, %s; %s", code, stderr, h.mustAs("why", id))
	}
	for _, host := range h.nodes { // the leader that has stored the output is not needed
		if err := os.RemoveAll(filepath.Join(host.node.CellQueueDir(), "schedd", "spool")); err != nil {
			h.Fatal(err)
		}
	}
	for i := range 2 {
		task := strings.Replace(id, ".", fmt.Sprintf("[%d].", i), 1)
		if stdout, stderr, _ := h.runAs(someone, "logs", task); stdout != fmt.Sprintln(i) {
			h.Errorf("task %s wrote %q, %s", task, stdout, stderr)
		}
		if stdout, stderr, _ := h.runAs(someone, "logs", "--stderr", task); stdout != "e\n" {
			h.Errorf("task %s wrote %q to standard error, %s", task, stdout, stderr)
		}
		var shown struct{ Job struct{ Exit document.Exit } }
		if want := fmt.Sprint(i, "\n", text); !h.queryJSON(&shown, "show", task) || shown.Job.Exit.Stored == nil ||
			shown.Job.Exit.Stored.StdoutBytes != 2 || shown.Job.Exit.Stored.StderrBytes != 2 ||
			shown.Job.Exit.Stored.FileBytes <= int64(len(want)) {
			h.Errorf("task %s: roost show says of its stored output: %+v", task, shown.Job.Exit.Stored)
		}
		to := filepath.Join(h.home, fmt.Sprint("fetched", i))
		if err := errors.Join(os.Mkdir(to, 0o700), os.Chown(to, int(someone.uid), int(someone.gid))); err != nil {
			h.Fatal(err)
		}
		h.mustAs("fetch", "--to", to, task)
		want := fmt.Sprint(i, "\n", text)
		copied, err := os.ReadFile(filepath.Join(to, "sub", "copy"))
		result, rerr := os.ReadFile(filepath.Join(to, "result"))
		if err != nil || rerr != nil || string(copied) != want || string(result) != fmt.Sprintln(len(want)) {
			h.Errorf("fetched of task %s: %d bytes, %q, %v, %v", task, len(copied), result, err, rerr)
		}
		if _, stderr, code := h.runAs(commandUser{12346, 12346}, "fetch", "--to", "/tmp", task); code == 0 ||
			!strings.Contains(stderr, "lacks the capability") {
			h.Errorf("another user fetches: %d, %s", code, stderr)
		}
	}
}

// runLargeScript submits a script that is too large for its job's ad. The job runs after
// all members of the queue have lost what they have of the script.
func (h *cellHostPool) runLargeScript() {
	text := "#!/bin/sh\necho whole\nexit 5\n" + strings.Repeat("# not read\n", 150<<10)
	script := h.writeUserFile("large.sh", text, 0o600)
	id := strings.TrimSpace(h.mustAs("qsub", "--cell", "-h", "-l", "mem=10mb", script))
	for _, host := range h.nodes {
		for _, dir := range []string{host.node.CellQueueDir(), host.dir} {
			if err := os.RemoveAll(filepath.Join(dir, "schedd", "scripts")); err != nil {
				h.Fatal(err)
			}
		}
	}
	h.mustAs("release", id)
	if _, stderr, code := h.runAs(someone, "wait", id); code != 5 {
		h.Errorf("a job with a large script: %d, %s", code, stderr)
	}
	if stdout, stderr, _ := h.runAs(someone, "logs", id); stdout != "whole\n" {
		h.Errorf("a job with a large script wrote %q, %s", stdout, stderr)
	}
}

// servicesChooseQueue has a user submit services from a submit node, with and without
// naming a queue.
func (h *cellHostPool) servicesChooseQueue() {
	path := h.writeUserFile("service.hcl", "job \"hub\" {\n  command = [\"/bin/sleep\", \"1000\"]\n"+
		"  memory = \"10MiB\"\n  service { }\n}\n", 0o600)
	id := strings.TrimSpace(h.mustAs("submit", "--quiet", path))
	local := strings.TrimSpace(h.mustAs("submit", "--quiet", "--local", path))
	if !strings.HasSuffix(id, "."+cellQueueName) || !strings.HasSuffix(local, ".submit") {
		h.Errorf("a service is %s in the queue of the cell, and %s in that of the submit node", id, local)
	}
	h.mustAs("rm", id, local)
}

// makeCellQueue is makeCell with the members of a queue on the central managers.
func makeCellQueue(t *testing.T) *cellHostPool {
	h := makeCell(t)
	var members []string
	for _, name := range []string{"central1", "central2", "central3"} {
		members = append(members, centrals[name]+":9727")
	}
	ca := filepath.Join(h.dir, "ca")
	for name, host := range h.nodes {
		host.node.Pool = cellQueueName
		host.node.ImageServer = centrals["central2"] + ":9704"
		if !slices.Contains([]string{"central1", "central2", "central3"}, name) {
			continue
		}
		roles := []peer.Role{peer.Collector, peer.Negotiator, peer.Schedd, peer.CellQueue}
		if name == "central2" {
			roles = append(roles, peer.CheckpointServer)
			host.node.Images = &config.CheckpointServerSettings{Listen: []string{host.node.ImageServer}}
		}
		host.node.TLS = h.issueCertificate(ca, name, roles...)
		host.node.CellQueue = &config.CellQueueSettings{Listen: []string{centrals[name] + ":9726"},
			Member: centrals[name] + ":9727", Members: members}
	}
	for _, host := range h.nodes {
		if err := os.WriteFile(host.dir+".hcl", config.Write(host.node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// queueLeader returns the host whose member acts for the queue, "" if none does.
func (h *cellHostPool) queueLeader() string {
	for name, host := range h.nodes {
		if host.node.CellQueue == nil {
			continue
		}
		conn, err := net.Dial("unix", filepath.Join(host.dir, "run", "cell-queue-schedd.sock"))
		if err == nil {
			conn.Close()
			return name
		}
	}
	return ""
}

// submitToQueue submits a job of so many tasks to the queue of the cell.
func (h *cellHostPool) submitToQueue(name, script string, count int) string {
	h.Helper()
	path := h.writeUserFile(name+".hcl", fmt.Sprintf("job %q {\n  command = [\"/bin/sh\", \"-c\", %q]\n  count = %d\n"+
		"  memory = \"10MiB\"\n}\n", name, script, count), 0o600)
	return h.mustAs("submit", "--quiet", "--cell", path)
}

// countInQueue returns how many tasks of a job are in a state.
func (h *cellHostPool) countInQueue(id, state string) int {
	var shown struct {
		Job struct{ Counts map[string]int }
	}
	if !h.querySubmitNode(&shown, "show", id) {
		return 0
	}
	return shown.Job.Counts[state]
}

func (h *cellHostPool) runningInQueue(id string) int { return h.countInQueue(id, "running") }
