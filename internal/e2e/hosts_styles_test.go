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

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
)

// stylesHosts is a pool with two submit nodes: submit is the one whose pool this is, and second is the other's.
type stylesHosts struct {
	*hosts
	second *hosts
	cores  map[string]int // of a task, by the name of its batch
}

// TestStyles lets two submit nodes place their batch tasks themselves, on copies of the same two machines, which have room for a part of them only: what
// both have chosen comes back and is placed elsewhere, nothing is granted twice, and each task runs once. Then the leader places the same tasks, and the
// same have completed.
func TestStyles(t *testing.T) {
	t.Parallel()
	debug := special{env: []string{"ROOST_DEBUG=1"}} // the negotiator says what was proposed
	h := &stylesHosts{hosts: startHostsAs(t, debug), cores: map[string]int{}}
	h.add("submit2", "10.111.0.3", h.issue(filepath.Join(h.dir, "ca"), "submit2", auth.Schedd), func(n *config.Node) {
		n.Schedd = &config.Schedd{SocketMode: 0o666}
	}).start()
	h.second = h.in(t)
	h.second.nodes = maps.Clone(h.nodes)
	h.second.nodes["submit"] = h.nodes["submit2"]
	h.await("the second submit node", func() bool { _, _, code := h.second.as(someone, "jobs"); return code == 0 })

	h.administer("central", "cell", "set", "distributed", "on")
	h.awaitPlacing()
	conflicts := 0
	for round := 0; round < 3 && conflicts < coresOfNode; round++ { // on a busy machine one of them may have been too late
		conflicts = h.bothChooseTheSame(round)
	}
	if conflicts < coresOfNode {
		t.Errorf("%d places that both had chosen came back, want %d", conflicts, coresOfNode)
	}
	distributed := h.load("distributed")
	proposed := h.proposals()
	h.administer("central", "cell", "set", "distributed", "off")
	central := h.load("central")
	if len(central) == 0 || !maps.Equal(distributed, central) {
		t.Errorf("completed where schedds place: %v, where the leader does: %v", distributed, central)
	}
	for _, name := range []string{"submit", "submit2"} {
		before, after := proposed[name], h.proposals()[name]
		t.Logf("%s proposed %d places, of which %d conflicted", name, before.units, before.conflicts)
		if before.units < coresOfNode || after.units != before.units {
			t.Errorf("%s proposed %d places, and %d when it had been told to leave that to the leader", name, before.units, after.units-before.units)
		}
	}
	h.grantedOnce()
	h.roomEnough()
}

// at are the submit nodes.
func (h *stylesHosts) at() []*hosts { return []*hosts{h.hosts, h.second} }

// awaitPlacing waits until both schedds know the machines, and place.
func (h *stylesHosts) awaitPlacing() {
	h.Helper()
	for i, at := range h.at() {
		name := []string{"submit", "submit2"}[i]
		h.await(name+" places", func() bool {
			at.must("wait", "-q", at.submit(`job "small" { command = ["true"] }`))
			return h.proposals()[name].units > 0
		})
	}
}

// bothChooseTheSame has both schedds place tasks on the one machine that all like better, in the same moment: the leader hears of them when it wakes. All
// run at once in the end, half of them elsewhere. It returns how many places came back.
func (h *stylesHosts) bothChooseTheSame(round int) (conflicts int) {
	h.Helper()
	h.await("nothing holds a core", func() bool {
		var all struct {
			Nodes []struct{ CPUs struct{ Free float64 } }
		}
		h.look(&all, "nodes")
		return len(all.Nodes) == 2 && all.Nodes[0].CPUs.Free == coresOfNode && all.Nodes[1].CPUs.Free == coresOfNode
	})
	before := h.proposals()
	leader := h.nodes["central"].daemon("negotiator")
	if err := syscall.Kill(leader, syscall.SIGSTOP); err != nil {
		h.Fatal(err)
	}
	var ids []string
	g := h.gate(fmt.Sprint("same-", round))
	for _, at := range h.at() {
		ids = append(ids, at.submit(fmt.Sprintf(`job "same" {
  script = %q
  count  = %d
  memory = "16MiB"
  rank   = "TARGET.Name == \"exec1\""
}`, g.wait, coresOfNode)))
	}
	rest(h.Context(), time.Second) // what they say is on its way
	if err := syscall.Kill(leader, syscall.SIGCONT); err != nil {
		h.Fatal(err)
	}
	h.await("all of both run", func() bool {
		for i, at := range h.at() {
			if at.counts(ids[i])["running"] != coresOfNode {
				return false
			}
		}
		return true
	})
	g.open()
	for i, at := range h.at() {
		h.await("they end", func() bool { return at.show(ids[i]).State == "completed" })
	}
	for name, all := range h.proposals() {
		conflicts += all.conflicts - before[name].conflicts
	}
	return conflicts
}

// counts is how many tasks of a job are in each state.
func (h *hosts) counts(id string) map[string]int {
	var shown struct {
		Job struct{ Counts map[string]int }
	}
	h.look(&shown, "show", id)
	return shown.Job.Counts
}

// load runs the same jobs again, and lists which tasks have completed.
func (h *stylesHosts) load(style string) map[string]bool {
	h.Helper()
	const size = 30
	jobs := map[string]*hosts{} // by id
	var names []string
	for i, at := range h.at() {
		for j := range 3 {
			name := fmt.Sprintf("batch-%s-%d-%d", style, i, j)
			names = append(names, name)
			h.cores[name] = 1 + j%2
			jobs[at.submit(fmt.Sprintf("job %q {\n  script = <<-END\n%s\n  END\n  count  = %d\n  cpus   = %d\n  memory = \"16MiB\"\n}",
				name, fmt.Sprintf(batchScript, h.ledger(name), filepath.Join(h.home, "lock-"+name)), size, h.cores[name]))] = at
		}
		jobs[at.submit(fmt.Sprintf("job \"stream-%d\" {\n  command = [\"sleep\", \"0.2\"]\n  count = 2\n  memory = \"16MiB\"\n  app_class = \"stream\"\n}", i))] = at
		jobs[at.submit(fmt.Sprintf("job \"gang-%d\" {\n  command = [\"sleep\", \"0.2\"]\n  count = 4\n  memory = \"16MiB\"\n  gang = true\n}", i))] = at
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		h.awaitFor(time.Minute, style+": "+id+" has completed", func() bool { return jobs[id].show(id).State == "completed" })
	}
	done := map[string]bool{}
	for _, name := range names {
		for _, m := range h.once(name, size) {
			if m.what == "end" && m.attempt == 1 {
				done[fmt.Sprintf("%s[%d]", strings.Replace(name, "-"+style, "", 1), m.index)] = true
			}
		}
	}
	return done
}

// placed counts what a schedd has proposed: units, and how many of them conflicted.
type placed struct{ units, conflicts int }

var proposedLine = regexp.MustCompile(`msg="schedd proposed" .*\bschedd=(\S+) units=(\d+) conflicts=(\d+)`)

func (h *stylesHosts) proposals() map[string]placed {
	all := map[string]placed{}
	for _, m := range proposedLine.FindAllStringSubmatch(h.nodes["central"].said(), -1) {
		units, _ := strconv.Atoi(m[2])
		conflicts, _ := strconv.Atoi(m[3])
		all[m[1]] = placed{all[m[1]].units + units, all[m[1]].conflicts + conflicts}
	}
	return all
}

var grantMade = regexp.MustCompile(`msg="claim made" .*\bgrant=(\d+) epoch=(\d+)`)

// grantedOnce holds that no grant made two claims.
func (h *stylesHosts) grantedOnce() {
	seen := map[string]string{}
	for _, name := range []string{"exec1", "exec2"} {
		for _, m := range grantMade.FindAllStringSubmatch(h.nodes[name].said(), -1) {
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

// roomEnough holds that no machine ever ran tasks on more cores than it has (P5).
func (h *stylesHosts) roomEnough() {
	type change struct {
		moment
		cores int
	}
	var all []change
	for name, cores := range h.cores {
		for _, m := range h.moments(name) {
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
