package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// centrals maps the central managers of the pool to their addresses.
var centrals = map[string]string{"central1": "10.111.0.1", "central2": "10.111.0.3", "central3": "10.111.0.4",
	"central4": "10.111.0.5"}

// cellHostPool is a pool with three central managers. The fourth has not joined.
type cellHostPool struct {
	*hostPool
	addresses map[string]string // by host

	batches        int
	fences         []*fencedArray
	steadyDuration time.Duration // how long the steady task ran
}

// TestCell runs three central managers that die and are cut off from each other in every
// way. Jobs run, a running task is not disturbed, and each task of a job runs once.
func TestCell(t *testing.T) {
	t.Parallel()
	h := startCell(t)
	h.setConcurrencyLimit()
	steady, g := h.submitSteadyTask("steady")
	for _, tt := range []struct {
		name string
		run  func(*cellHostPool)
	}{
		{"the leader is killed", (*cellHostPool).leaderIsKilled},
		{"the next grant", (*cellHostPool).timeToNextGrant},
		{"the leader is stopped", (*cellHostPool).leaderIsStopped},
		{"the leader is isolated with clients on its side", (*cellHostPool).leaderIsIsolated},
		{"a minority is isolated", (*cellHostPool).minorityIsIsolated},
		{"a link is cut one way", (*cellHostPool).linkIsCutOneWay},
		{"a link flaps", (*cellHostPool).linkFlaps},
		{"a disk is wiped", (*cellHostPool).diskIsWiped},
		{"a node is cut off for longer than a lease", (*cellHostPool).nodeIsCutOff},
		{"a member is replaced", (*cellHostPool).memberIsReplaced},
	} {
		if !t.Run(tt.name, func(t *testing.T) {
			part := *h
			part.hostPool = h.forSubtest(t)
			tt.run(&part)
			part.awaitThreeVoters()
			part.awaitAgreement()
			h.batches, h.fences = part.batches, part.fences
		}) {
			t.FailNow() // the rest would wait in vain
		}
	}
	h.checkUndisturbed(steady, "steady", g)
	h.auditCell()
}

func startCell(t *testing.T) *cellHostPool {
	h := makeCell(t)
	h.startAll()
	return h
}

// makeCell creates the pool without starting it.
func makeCell(t *testing.T) *cellHostPool { return makeCellOn(t, newNetwork(t), hostPoolOptions{}) }

func makeCellOn(t *testing.T, net *testNetwork, as hostPoolOptions) *cellHostPool {
	dir := openDir(t) // removed after everything that runs has ended
	h := &cellHostPool{hostPool: &hostPool{T: t, net: net, dir: dir, nodes: map[string]*testHost{},
		hostPoolOptions: as}, addresses: map[string]string{}}
	h.roost, h.home = program(t, as.tags...), filepath.Join(h.dir, "home")
	if err := os.Mkdir(h.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.home, int(someone.uid), int(someone.gid)); err != nil {
		t.Fatal(err)
	}
	ca := h.startAuthority("ca")
	for _, name := range []string{"central1", "central2", "central3"} {
		h.addCentralManager(ca, name)
	}
	h.addCellHost("submit", "10.111.0.2", h.issueCertificate(ca, "submit", peer.Schedd), func(n *config.Node) {
		n.Schedd = &config.ScheddSettings{SocketMode: 0o666}
	})
	h.addServer("exec1", "10.111.0.11")
	h.addServer("exec2", "10.111.0.12")
	return h
}

// addServer adds an execute node without an owner.
func (h *cellHostPool) addServer(name, address string) {
	h.addCellHost(name, address, h.issueCertificate(filepath.Join(h.dir, "ca"), name, peer.Startd),
		func(n *config.Node) {
			d := config.StartdSettings{Name: name, Listen: []string{address + ":9703"}}
			d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 1000*coresOfNode, 8<<30, 8<<30
			n.Startds = []config.StartdSettings{d}
		})
}

// startAll starts everything, and waits until all nodes are known.
func (h *cellHostPool) startAll() {
	h.Helper()
	for _, n := range h.nodes {
		n.start()
	}
	h.awaitTrue("both execute nodes", func() bool { return slices.Equal(h.machineNames(), []string{"exec1", "exec2"}) })
	h.awaitThreeVoters()
}

func (h *cellHostPool) addCentralManager(ca, name string) {
	h.addCellHost(name, centrals[name], h.issueCertificate(ca, name, peer.Collector, peer.Negotiator),
		func(n *config.Node) {
			n.Collector = &config.CollectorSettings{Listen: []string{centrals[name] + ":9701"}}
			n.Negotiator = &config.NegotiatorSettings{Listen: []string{centrals[name] + ":9702"},
				Cycle: 5 * time.Second}
		})
}

// addCellHost adds a host that knows all central managers.
func (h *cellHostPool) addCellHost(name, address string, tls *config.TLSFiles, roles func(*config.Node)) {
	h.addresses[name] = address
	h.addHost(name, address, tls, func(n *config.Node) {
		n.Collectors, n.Negotiators = nil, nil
		for _, c := range []string{"central1", "central2", "central3", "central4"} {
			if c != "central4" || name == c { // the fourth is added later, and the others do not know it
				n.Collectors = append(n.Collectors, centrals[c]+":9701")
				n.Negotiators = append(n.Negotiators, centrals[c]+":9702")
			}
		}
		roles(n)
	})
}

// cellStatus is the output of roost cell.
type cellStatus struct {
	Leader  string
	Spare   int
	Members []struct {
		Name, Role, ID, Trouble, Digest string
		At                              uint64 `json:"digest_at"`
	}
}

func (s cellStatus) leader() string {
	for _, m := range s.Members {
		if m.Role == "leader" {
			return m.Name
		}
	}
	return ""
}

// setConcurrencyLimit sets the concurrency limit on a central manager.
func (h *cellHostPool) setConcurrencyLimit() {
	h.administer("central1", "limit", "set", "program", fmt.Sprint(concurrencyLimitUnits))
}

// administer runs an administrator's command on a central manager, and returns its
// output.
func (h *hostPool) administer(on string, args ...string) string {
	h.Helper()
	out, err := h.tryAdminister(on, args...)
	if err != nil {
		h.printLogs()
		h.Fatalf("on %s: roost %.200s: %v\n%s", on, strings.Join(args, " "), err, out)
	}
	return out
}

func (h *hostPool) tryAdminister(on string, args ...string) (string, error) {
	n := h.nodes[on]
	file := filepath.Join(n.dir, "etc", "node.hcl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, config.Write(n.node), 0o600)); err != nil {
		h.Fatal(err)
	}
	args = append([]string{"netns", "exec", h.net.namespaceName(on), h.roost}, args...)
	out, err := exec.CommandContext(h.Context(), "ip", append(args, "--dir", n.dir)...).CombinedOutput()
	return string(out), err
}

// runCell runs roost cell on a central manager.
func (h *cellHostPool) runCell(on string, args ...string) (string, error) {
	args = append([]string{"netns", "exec", h.net.namespaceName(on), h.roost, "cell"}, args...)
	out, err := exec.CommandContext(h.Context(), "ip", append(args, "--config", h.nodes[on].dir+".hcl")...).
		CombinedOutput()
	return string(out), err
}

func (h *cellHostPool) status(on string) (s cellStatus) {
	if out, err := h.runCell(on, "--json"); err == nil {
		json.Unmarshal([]byte(out), &s)
	}
	return s
}

// awaitThreeVoters waits until there are three voters, and all are up.
func (h *cellHostPool) awaitThreeVoters() {
	h.Helper()
	h.awaitTrue("a whole cell", func() bool {
		s := h.status("central1")
		return s.Spare == 1 && len(s.Members) == 3 && s.leader() != ""
	})
}

// awaitLeader waits until there is a leader, and returns it. A central manager that has
// just started does not know it for a moment.
func (h *cellHostPool) awaitLeader() (name string) {
	h.Helper()
	h.awaitTrue("somebody leads", func() bool { name = h.status("central1").leader(); return name != "" })
	return name
}

// otherCentrals returns the other two of three.
func otherCentrals(but string) []string {
	return slices.DeleteFunc([]string{"central1", "central2", "central3"}, func(c string) bool { return c == but })
}

// setPartition drops what the hosts send to others, or ends that.
func (h *cellHostPool) setPartition(from, to []string, drop bool) {
	verb := "del"
	if drop {
		verb = "add"
	}
	for _, a := range from {
		for _, b := range to {
			h.net.runIP("-n", h.net.namespaceName(a), "route", verb, "blackhole", h.addresses[b]+"/32")
		}
	}
}

func (h *cellHostPool) leaderIsKilled() {
	old := h.awaitLeader()
	before := h.submitArray("killed-before")
	held, removed := h.submitFencedArray("killed-held", "exec1"), h.submitFencedArray("killed-removed", "exec2")
	h.nodes[old].killMaster()
	h.stopArray(held, "hold")
	h.stopArray(removed, "rm")
	after := h.submitArray("killed-after")
	h.awaitArray(before)
	h.awaitArray(after)
	h.releaseArray(held)
	h.nodes[old].start()
}

func (h *cellHostPool) leaderIsIsolated() {
	old := h.awaitLeader()
	held, removed := h.submitFencedArray("isolated-held", "exec1"), h.submitFencedArray("isolated-removed", "exec2")
	here, there := []string{old, "submit", "exec1"}, append(otherCentrals(old), "exec2")
	h.setPartition(here, there, true)
	h.setPartition(there, here, true)
	h.awaitTrue("the others elect one", func() bool {
		now := h.status(there[0])
		return now.leader() != "" && now.leader() != old && now.Spare == 0
	})
	h.stopArray(held, "hold") // some of its tasks are on the other side
	h.stopArray(removed, "rm")
	b := h.submitArray("isolated")
	if got := h.status(old); got.Spare != -1 {
		h.Errorf("the old leader says that it can spare %d", got.Spare)
	}
	waitReal(h.Context(), 2*time.Second)
	if text, _ := os.ReadFile(h.hostPool.newTaskLog(b.name)); len(text) > 0 {
		h.Errorf("a leader without a majority has had tasks started:\n%s", text)
	}
	h.setPartition(here, there, false)
	h.setPartition(there, here, false)
	h.releaseArray(held)
	h.awaitArray(b)
}

func (h *cellHostPool) minorityIsIsolated() {
	follower := otherCentrals(h.awaitLeader())[0]
	h.net.unplug(follower)
	h.awaitArray(h.submitArray("minority"))
	h.net.replug(follower)
}

func (h *cellHostPool) linkIsCutOneWay() {
	for _, out := range []bool{true, false} {
		h.awaitThreeVoters()
		old := h.awaitLeader()
		from, to := []string{old}, otherCentrals(old)
		if !out {
			from, to = to, from
		}
		h.setPartition(from, to, true)
		h.awaitArray(h.submitArray(fmt.Sprintf("one-way-%v", out)))
		h.setPartition(from, to, false)
	}
}

func (h *cellHostPool) linkFlaps() {
	b := h.submitArray("flaps")
	for range 8 {
		flapping := h.status("central1").leader()
		if flapping == "" {
			flapping = "central1"
		}
		h.net.unplug(flapping)
		waitReal(h.Context(), 400*time.Millisecond)
		h.net.replug(flapping)
		waitReal(h.Context(), 300*time.Millisecond)
	}
	h.awaitArray(b)
	h.awaitArray(h.submitArray("flapped"))
}

func (h *cellHostPool) diskIsWiped() {
	victim := otherCentrals(h.awaitLeader())[0]
	id := func() string {
		for _, m := range h.status("central1").Members {
			if m.Name == victim && (m.Role == "follower" || m.Role == "leader") {
				return m.ID
			}
		}
		return ""
	}
	former := id()
	h.nodes[victim].killMaster()
	if err := os.RemoveAll(filepath.Join(h.nodes[victim].dir, "negotiator")); err != nil {
		h.Fatal(err)
	}
	b := h.submitArray("wiped")
	h.nodes[victim].start()
	h.awaitTrue(victim+" votes under a new id", func() bool { now := id(); return now != "" && now != former })
	h.awaitArray(b)
}

func (h *cellHostPool) memberIsReplaced() {
	h.addCentralManager(filepath.Join(h.dir, "ca"), "central4")
	h.nodes["central4"].start()
	h.awaitTrue("central4 is taken in", func() bool {
		_, err := h.runCell("central1", "add", centrals["central4"]+":9702")
		return err == nil
	})
	b := h.submitArray("replaced")
	h.awaitTrue("central3 is removed", func() bool {
		out, err := h.runCell("central1", "remove", "central3")
		return err == nil || strings.Contains(out, "no member")
	})
	h.nodes["central3"].stopMaster()
	h.awaitArray(b)
	h.awaitArray(h.submitArray("after"))
}
