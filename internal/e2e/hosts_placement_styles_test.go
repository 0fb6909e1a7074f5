package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// placementStylePool is a pool with two submit nodes. The embedded pool belongs to
// submit, and second to the other one.
type placementStylePool struct {
	*hostPool
	second *hostPool
	cores  map[string]int // cores of a task, by the name of its batch
}

// TestStyles lets two submit nodes place their batch tasks themselves, on copies of the
// same two machines. The machines have room for some of the tasks. What both have chosen
// comes back and is placed elsewhere, nothing is granted twice, and each task runs once.
// Then the leader places the same tasks, and the same ones complete.
func TestStyles(t *testing.T) {
	t.Parallel()
	debug := hostPoolOptions{env: []string{"ROOST_DEBUG=1"}} // the negotiator logs what was proposed
	h := &placementStylePool{hostPool: startHostsAs(t, debug), cores: map[string]int{}}
	h.addHost("submit2", "10.111.0.3", h.issueCertificate(filepath.Join(h.dir, "ca"), "submit2", peer.Schedd),
		func(n *config.Node) {
			n.Schedd = &config.ScheddSettings{SocketMode: 0o666}
		}).start()
	h.second = h.forSubtest(t)
	h.second.nodes = maps.Clone(h.nodes)
	h.second.nodes["submit"] = h.nodes["submit2"]
	h.awaitTrue("the second submit node", func() bool {
		_, _, code := h.second.runAs(someone, "jobs")
		return code == 0
	})

	h.administer("central", "cell", "set", "distributed", "on")
	h.awaitPlacing()
	conflicts := 0
	// on a busy machine one of them may have been too late
	for round := 0; round < 3 && conflicts < coresOfNode; round++ {
		conflicts = h.bothChooseTheSame(round)
	}
	if conflicts < coresOfNode {
		t.Errorf("%d places that both had chosen came back, want %d", conflicts, coresOfNode)
	}
	distributed := h.runLoad("distributed")
	proposed := h.proposals()
	h.administer("central", "cell", "set", "distributed", "off")
	central := h.runLoad("central")
	if len(central) == 0 || !maps.Equal(distributed, central) {
		t.Errorf("completed where schedds place: %v, where the leader does: %v", distributed, central)
	}
	for _, name := range []string{"submit", "submit2"} {
		before, after := proposed[name], h.proposals()[name]
		t.Logf("%s proposed %d places, of which %d conflicted", name, before.units, before.conflicts)
		if before.units < coresOfNode || after.units != before.units {
			t.Errorf("%s proposed %d places, and %d when it had been told to leave that to the leader", name,
				before.units, after.units-before.units)
		}
	}
	h.checkGrantsUsedOnce()
	h.checkCapacity()
}

// submitHosts returns the submit nodes.
func (h *placementStylePool) submitHosts() []*hostPool { return []*hostPool{h.hostPool, h.second} }

// awaitPlacing waits until both schedds know the machines and place tasks.
func (h *placementStylePool) awaitPlacing() {
	h.Helper()
	for i, at := range h.submitHosts() {
		name := []string{"submit", "submit2"}[i]
		h.awaitTrue(name+" places", func() bool {
			at.mustAs("wait", "-q", at.submitJob(`job "small" { command = ["true"] }`))
			return h.proposals()[name].units > 0
		})
	}
}

// bothChooseTheSame lets both schedds place tasks on the machine that all prefer, at the
// same moment. The leader sees the proposals when it resumes. In the end all tasks run at
// once, half of them elsewhere. It returns how many proposals came back.
func (h *placementStylePool) bothChooseTheSame(round int) (conflicts int) {
	h.Helper()
	h.awaitTrue("nothing holds a core", func() bool {
		var all struct {
			Nodes []struct{ CPUs struct{ Free float64 } }
		}
		h.querySubmitNode(&all, "nodes")
		return len(all.Nodes) == 2 && all.Nodes[0].CPUs.Free == coresOfNode && all.Nodes[1].CPUs.Free == coresOfNode
	})
	before := h.proposals()
	leader := h.nodes["central"].daemonPID("negotiator")
	if err := syscall.Kill(leader, syscall.SIGSTOP); err != nil {
		h.Fatal(err)
	}
	var ids []string
	g := h.newGate(fmt.Sprint("same-", round))
	for _, at := range h.submitHosts() {
		ids = append(ids, at.submitJob(fmt.Sprintf(`job "same" {
  script = %q
  count  = %d
  memory = "16MiB"
  rank   = "TARGET.Name == \"exec1\""
}`, g.wait, coresOfNode)))
	}
	waitReal(h.Context(), time.Second) // their messages are in transit
	if err := syscall.Kill(leader, syscall.SIGCONT); err != nil {
		h.Fatal(err)
	}
	h.awaitTrue("all of both run", func() bool {
		for i, at := range h.submitHosts() {
			if at.stateCounts(ids[i])["running"] != coresOfNode {
				return false
			}
		}
		return true
	})
	g.openGate()
	for i, at := range h.submitHosts() {
		h.awaitTrue("they end", func() bool { return at.showTask(ids[i]).State == "completed" })
	}
	for name, all := range h.proposals() {
		conflicts += all.conflicts - before[name].conflicts
	}
	return conflicts
}

// stateCounts returns how many tasks of a job are in each state.
func (h *hostPool) stateCounts(id string) map[string]int {
	var shown struct {
		Job struct{ Counts map[string]int }
	}
	h.querySubmitNode(&shown, "show", id)
	return shown.Job.Counts
}

// runLoad runs the same jobs again, and lists which tasks have completed.
func (h *placementStylePool) runLoad(style string) map[string]bool {
	h.Helper()
	const size = 30
	jobs := map[string]*hostPool{} // by id
	var names []string
	for i, at := range h.submitHosts() {
		for j := range 3 {
			name := fmt.Sprintf("batch-%s-%d-%d", style, i, j)
			names = append(names, name)
			h.cores[name] = 1 + j%2
			jobs[at.submitJob(fmt.Sprintf("job %q {\n  script = <<-END\n%s\n  END\n  count  = %d\n  cpus   = %d\n  "+
				"memory = \"16MiB\"\n}",
				name, fmt.Sprintf(batchScript, h.newTaskLog(name), filepath.Join(h.home, "lock-"+name)), size,
				h.cores[name]))] = at
		}
		jobs[at.submitJob(fmt.Sprintf("job \"stream-%d\" {\n  command = [\"sleep\", \"0.2\"]\n  count = 2\n  memory "+
			"= \"16MiB\"\n  app_class = \"stream\"\n}", i))] = at
		jobs[at.submitJob(fmt.Sprintf("job \"gang-%d\" {\n  command = [\"sleep\", \"0.2\"]\n  count = 4\n  memory = "+
			"\"16MiB\"\n  gang = true\n}", i))] = at
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		h.awaitTrue(style+": "+id+" has completed", func() bool {
			return jobs[id].showTask(id).State == "completed"
		})
	}
	done := map[string]bool{}
	for _, name := range names {
		for _, m := range h.checkRanOnce(name, size) {
			if m.what == "end" && m.attempt == 1 {
				done[fmt.Sprintf("%s[%d]", strings.Replace(name, "-"+style, "", 1), m.index)] = true
			}
		}
	}
	return done
}

// proposalCounts counts what a schedd has proposed: tasks, and how many of them
// conflicted.
type proposalCounts struct{ units, conflicts int }

var proposedLine = regexp.MustCompile(`msg="schedd proposed" .*\bschedd=(\S+) units=(\d+) conflicts=(\d+)`)

func (h *placementStylePool) proposals() map[string]proposalCounts {
	all := map[string]proposalCounts{}
	for _, m := range proposedLine.FindAllStringSubmatch(h.nodes["central"].logText(), -1) {
		units, _ := strconv.Atoi(m[2])
		conflicts, _ := strconv.Atoi(m[3])
		all[m[1]] = proposalCounts{all[m[1]].units + units, all[m[1]].conflicts + conflicts}
	}
	return all
}

var grantMade = regexp.MustCompile(`msg="claim made" .*\bgrant=(\d+) epoch=(\d+)`)

// checkGrantsUsedOnce checks that no grant made two claims.
func (h *placementStylePool) checkGrantsUsedOnce() {
	seen := map[string]string{}
	for _, name := range []string{"exec1", "exec2"} {
		for _, m := range grantMade.FindAllStringSubmatch(h.nodes[name].logText(), -1) {
			grant := m[2] + "." + m[1]
			if seen[grant] != "" {
				h.Errorf("grant %s made a claim at %s, and one at %s", grant, seen[grant], name)
			}
			seen[grant] = name
		}
	}
	if h.Logf("%d claims", len(seen)); len(seen) < 2*coresOfNode {
		h.Error("that is too few to say anything")
	}
}

// checkCapacity checks that no machine ever ran tasks on more cores than it has (P5).
func (h *placementStylePool) checkCapacity() {
	type change struct {
		taskLogLine
		cores int
	}
	var all []change
	for name, cores := range h.cores {
		for _, m := range h.taskLogLines(name) {
			if m.what != "start" {
				cores = -h.cores[name]
			} else {
				cores = h.cores[name]
			}
			all = append(all, change{m, cores})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return int(a.at - b.at) })
	busy := map[string]int{}
	for _, c := range all {
		if busy[c.node] += c.cores; busy[c.node] > coresOfNode {
			h.Errorf("P5: %d cores of %s were busy", busy[c.node], c.node)
		}
	}
}
