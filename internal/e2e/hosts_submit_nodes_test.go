package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// submitNodesPool is a pool with three submit nodes.
type submitNodesPool struct {
	*hostPool
	at  map[string]*hostPool // by submit node: the pool with commands run there
	ids map[string]string    // by submit node: the id of a job
}

// submitNodes maps the names of the submit nodes to their addresses.
var submitNodes = map[string]string{"s1": "10.111.0.21", "s2": "10.111.0.22", "s3": "10.111.0.23"}

func startSubmitNodes(t *testing.T) *submitNodesPool {
	h := &submitNodesPool{hostPool: startHosts(t), at: map[string]*hostPool{}, ids: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(submitNodes)) {
		h.addHost(name, submitNodes[name], h.issueCertificate(filepath.Join(h.dir, "ca"), name, peer.Schedd),
			func(n *config.Node) {
				n.Schedd = &config.ScheddSettings{SocketMode: 0o666, Listen: []string{submitNodes[name] + ":9705"}}
			}).start()
		at := h.forSubtest(t)
		at.nodes = maps.Clone(h.nodes)
		at.nodes["submit"] = h.nodes[name]
		h.at[name] = at
	}
	for name, at := range h.at {
		h.awaitTrue(name+" serves", func() bool { _, _, code := at.runAs(someone, "jobs"); return code == 0 })
		h.ids[name] = at.submitJob(fmt.Sprintf(
			"job \"of-%s\" {\n  command = [\"sleep\", \"1000\"]\n  environment = { TOKEN = \"hunter2\" }\n}", name,
		))
	}
	return h
}

// jobListing is the output of roost jobs.
type jobListing struct {
	Jobs        []struct{ ID, State string }
	Unreachable []struct{ Node, Why string }
}

func (l *jobListing) containsJob(id string) bool {
	return slices.ContainsFunc(l.Jobs, func(j struct{ ID, State string }) bool { return j.ID == id })
}

// listJobs lists the jobs of the pool from a node, and returns how long that took.
func (h *submitNodesPool) listJobs(from string) (l jobListing, took time.Duration) {
	h.Helper()
	began := time.Now()
	h.at[from].queryJSON(&l, "jobs", "--all")
	return l, time.Since(began)
}

// TestManySchedds lists the jobs of all schedds from each of them. A schedd that is dead,
// stopped or cut off is named, and delays no list for long.
func TestManySchedds(t *testing.T) {
	h := startSubmitNodes(t)
	for from := range h.at {
		h.awaitTrue("all jobs are seen from "+from, func() bool {
			l, _ := h.listJobs(from)
			return l.containsJob(h.ids["s1"]) && l.containsJob(h.ids["s2"]) && l.containsJob(h.ids["s3"])
		})
		for name, id := range h.ids {
			if out := h.at[from].mustAs("show", id); !strings.Contains(out, "of-"+name) {
				t.Errorf("roost show %s at %s: %s", id, from, out)
			}
			if out := h.at[from].mustAs("why", id); !strings.Contains(out, id) {
				t.Errorf("roost why %s at %s: %s", id, from, out)
			}
		}
	}
	h.remoteJobCommands()
	h.administratorActs()
	h.scheddIsKilled()
	h.scheddIsStopped()
	h.nodeIsCutOff()
}

// remoteJobCommands checks what a user who is unknown at another node can do to a job
// there: nothing. The job's secrets are not shown.
func (h *submitNodesPool) remoteJobCommands() {
	id := h.ids["s2"]
	if out := h.at["s1"].mustAs("show", "--ad", id); strings.Contains(out, "hunter2") ||
		!strings.Contains(out, "only its owner is shown") {
		h.Errorf("roost show --ad %s at s1: %s", id, out)
	}
	if out := h.at["s2"].mustAs("show", "--ad", id); !strings.Contains(out, "hunter2") {
		h.Errorf("roost show --ad %s at s2: %s", id, out)
	}
	for _, line := range []string{"rm", "hold", "release", "retry", "suspend", "resume", "checkpoint", "logs", "ssh"} {
		for _, who := range []commandUser{someone, {0, 0}} {
			if out, errs, code := h.at["s1"].runAs(who, line, id); code == 0 ||
				!strings.Contains(out+errs, "in s2's queue") {
				h.Errorf("roost %s %s at s1: exit %d, %s%s", line, id, code, out, errs)
			}
		}
	}
	if got := h.at["s2"].showTask(id).State; got != "idle" && got != "starting" && got != "running" {
		h.Errorf("%s is %s", id, got)
	}
	out, errs, code := h.at["s1"].runAs(someone, "jobs", "--all", "--here")
	if code != 0 || !strings.Contains(out, h.ids["s1"]) || strings.Contains(out, id) {
		h.Errorf("roost jobs --here: exit %d, %s%s", code, out, errs)
	}
}

// administratorActs has a user of s1 hold and release a job of somebody else at s2. The
// user must have the capability for that. The job's events name the administrator. A user
// of that name at s3 is somebody else.
func (h *submitNodesPool) administratorActs() {
	id, admin := h.ids["s2"], commandUser{12346, 12346}
	h.administer("central", "admin", "give", "--force", "12346@s1", "jobs")
	h.awaitTrue("an administrator at s1 holds a job of s2", func() bool {
		_, _, code := h.at["s1"].runAs(admin, "hold", id)
		return code == 0
	})
	h.awaitTrue("it is held", func() bool { return h.at["s2"].showTask(id).State == "held" })
	if _, errs, code := h.at["s3"].runAs(admin, "release", id); code == 0 || !strings.Contains(errs, "in s2's queue") {
		h.Errorf("a user of s3 releases it: exit %d, %s", code, errs)
	}
	if _, errs, code := h.at["s2"].runAs(someone, "release", id); code == 0 ||
		!strings.Contains(errs, "12346@s1 holds it") {
		h.Errorf("its owner releases it: exit %d, %s", code, errs)
	}
	if _, errs, code := h.at["s1"].runAs(admin, "release", id); code != 0 {
		h.Errorf("the administrator releases it: exit %d, %s", code, errs)
	}
	out := h.at["s2"].mustAs("show", "--events", "0", id)
	for _, want := range []string{`held +by 12346@s1`, `released +by 12346@s1`} {
		if !regexp.MustCompile(want).MatchString(out) {
			h.Errorf("roost show has no %q:\n%s", want, out)
		}
	}
	h.administer("central", "admin", "rm", "12346@s1")
	h.awaitTrue("the capability is gone", func() bool {
		_, errs, code := h.at["s1"].runAs(admin, "hold", id)
		h.at["s1"].runAs(admin, "release", id)
		return code != 0 && strings.Contains(errs, "in s2's queue")
	})
}

// checkUnreachable checks that a list from s1 comes soon, has the job of s2, and names
// s3. A second list must be quick.
func (h *submitNodesPool) checkUnreachable(how string) {
	h.Helper()
	// two seconds, plus one and a half to start programs on a busy machine
	limits := []time.Duration{4 * time.Second, 1500 * time.Millisecond}
	for i, limit := range limits {
		l, took := h.listJobs("s1")
		h.Logf("%s, list %d: %v, %v", how, i+1, took.Round(time.Millisecond), l.Unreachable)
		if !l.containsJob(h.ids["s1"]) || !l.containsJob(h.ids["s2"]) || l.containsJob(h.ids["s3"]) ||
			!slices.ContainsFunc(l.Unreachable, func(u struct {
				Node, Why string
			}) bool {
				return u.Node == "s3"
			}) {
			h.Errorf("%s, list %d: %v", how, i+1, l)
		}
		if took > limit {
			h.Errorf("%s, list %d took %v", how, i+1, took)
		}
	}
	if _, errs, code := h.at["s1"].runAs(someone, "show", h.ids["s3"]); code == 0 ||
		!strings.Contains(errs, "s3 did not answer") {
		h.Errorf("%s: roost show: exit %d, %s", how, code, errs)
	}
}

func (h *submitNodesPool) checkAllReachable(how string) {
	h.Helper()
	h.awaitTrue("s3 is back after it was "+how, func() bool {
		l, _ := h.listJobs("s1")
		return l.containsJob(h.ids["s3"])
	})
}

func (h *submitNodesPool) scheddIsKilled() {
	h.nodes["s3"].killMaster()
	h.checkUnreachable("dead")
	h.nodes["s3"].start()
	h.checkAllReachable("dead")
}

func (h *submitNodesPool) scheddIsStopped() {
	pid := 0
	h.awaitTrue("the schedd of s3", func() bool { pid = h.nodes["s3"].daemonPID("schedd"); return pid != 0 })
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		h.Fatal(err)
	}
	h.checkUnreachable("stopped")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		h.Fatal(err)
	}
	h.checkAllReachable("stopped")
}

func (h *submitNodesPool) nodeIsCutOff() {
	h.net.unplug("s3")
	h.checkUnreachable("cut off")
	h.net.replug("s3")
	h.checkAllReachable("cut off")
}
