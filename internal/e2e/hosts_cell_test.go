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

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
)

// centrals are the central managers of the pool, and where they are.
var centrals = map[string]string{"central1": "10.111.0.1", "central2": "10.111.0.3", "central3": "10.111.0.4", "central4": "10.111.0.5"}

// cellHosts is a pool with three central managers. The fourth has not joined.
type cellHosts struct {
	*hosts
	where map[string]string // addresses of all hosts

	batches int
	fences  []*fenced
	wrote   time.Duration // for how long the steady task did
}

// TestCell lets three central managers decide together while they die and are cut off from each other in every way: jobs are run, a task that runs
// notices nothing, and each task of a job is run once.
func TestCell(t *testing.T) {
	t.Parallel()
	h := startCell(t)
	h.licence()
	steady, g := h.steady("steady")
	for _, tt := range []struct {
		name string
		run  func(*cellHosts)
	}{
		{"the leader is killed", (*cellHosts).leaderIsKilled},
		{"the next grant", (*cellHosts).nextGrant},
		{"the leader is stopped", (*cellHosts).leaderIsStopped},
		{"the leader is isolated with clients on its side", (*cellHosts).leaderIsIsolated},
		{"a minority is isolated", (*cellHosts).minorityIsIsolated},
		{"a link is cut one way", (*cellHosts).linkIsCutOneWay},
		{"a link flaps", (*cellHosts).linkFlaps},
		{"a disk is wiped", (*cellHosts).diskIsWiped},
		{"a node is cut off for longer than a lease", (*cellHosts).nodeIsCutOff},
		{"a member is replaced", (*cellHosts).memberIsReplaced},
	} {
		if !t.Run(tt.name, func(t *testing.T) {
			part := *h
			part.hosts = h.in(t)
			tt.run(&part)
			part.whole()
			part.agreed()
			h.batches, h.fences = part.batches, part.fences
		}) {
			t.FailNow() // the rest would wait for what does not come
		}
	}
	h.unnoticed(steady, "steady", g)
	h.audit()
}

func startCell(t *testing.T) *cellHosts {
	h := makeCell(t)
	h.begin()
	return h
}

// makeCell makes the pool, of which nothing runs yet.
func makeCell(t *testing.T) *cellHosts { return makeCellOn(t, newNetwork(t), special{}) }

func makeCellOn(t *testing.T, net *network, as special) *cellHosts {
	dir := openDir(t) // it goes after all that runs
	h := &cellHosts{hosts: &hosts{T: t, net: net, dir: dir, nodes: map[string]*host{}, special: as}, where: map[string]string{}}
	h.roost, h.home = program(t, as.tags...), filepath.Join(h.dir, "home")
	if err := os.Mkdir(h.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.home, int(someone.uid), int(someone.gid)); err != nil {
		t.Fatal(err)
	}
	ca := h.authority("ca")
	for _, name := range []string{"central1", "central2", "central3"} {
		h.central(ca, name)
	}
	h.join("submit", "10.111.0.2", h.issue(ca, "submit", auth.Schedd), func(n *config.Node) { n.Schedd = &config.Schedd{SocketMode: 0o666} })
	h.server("exec1", "10.111.0.11")
	h.server("exec2", "10.111.0.12")
	return h
}

// server adds an execute node that nobody sits at.
func (h *cellHosts) server(name, address string) {
	h.join(name, address, h.issue(filepath.Join(h.dir, "ca"), name, auth.Startd), func(n *config.Node) {
		d := config.Startd{Name: name, Listen: []string{address + ":9703"}}
		d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 1000*coresOfNode, 8<<30, 8<<30
		n.Startds = []config.Startd{d}
	})
}

// begin starts all of it, and waits until everybody is there.
func (h *cellHosts) begin() {
	h.Helper()
	for _, n := range h.nodes {
		n.start()
	}
	h.await("both execute nodes", func() bool { return slices.Equal(h.machines(), []string{"exec1", "exec2"}) })
	h.whole()
}

func (h *cellHosts) central(ca, name string) {
	h.join(name, centrals[name], h.issue(ca, name, auth.Collector, auth.Negotiator), func(n *config.Node) {
		n.Collector = &config.Collector{Listen: []string{centrals[name] + ":9701"}}
		n.Negotiator = &config.Negotiator{Listen: []string{centrals[name] + ":9702"}, Cycle: 5 * time.Second}
	})
}

// join adds a host that knows all central managers.
func (h *cellHosts) join(name, address string, tls *config.TLS, roles func(*config.Node)) {
	h.where[name] = address
	h.add(name, address, tls, func(n *config.Node) {
		n.Collectors, n.Negotiators = nil, nil
		for _, c := range []string{"central1", "central2", "central3", "central4"} {
			if c != "central4" || name == c { // the fourth is added later, and nobody else is told
				n.Collectors = append(n.Collectors, centrals[c]+":9701")
				n.Negotiators = append(n.Negotiators, centrals[c]+":9702")
			}
		}
		roles(n)
	})
}

// standing is what roost cell says.
type standing struct {
	Leader  string
	Spare   int
	Members []struct {
		Name, Role, ID, Trouble, Digest string
		At                              uint64 `json:"digest_at"`
	}
}

func (s standing) leader() string {
	for _, m := range s.Members {
		if m.Role == "leader" {
			return m.Name
		}
	}
	return ""
}

// licence says on a central manager how many licences there are.
func (h *cellHosts) licence() {
	h.administer("central1", "limit", "set", "program", fmt.Sprint(licences))
}

// administer runs a command of administrators on a central manager, and returns what it prints.
func (h *hosts) administer(on string, args ...string) string {
	h.Helper()
	out, err := h.tryAdminister(on, args...)
	if err != nil {
		h.tell()
		h.Fatalf("on %s: roost %.200s: %v\n%s", on, strings.Join(args, " "), err, out)
	}
	return out
}

func (h *hosts) tryAdminister(on string, args ...string) (string, error) {
	n := h.nodes[on]
	file := filepath.Join(n.dir, "etc", "node.hcl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, config.Write(n.node), 0o600)); err != nil {
		h.Fatal(err)
	}
	args = append([]string{"netns", "exec", h.net.space(on), h.roost}, args...)
	out, err := exec.CommandContext(h.Context(), "ip", append(args, "--dir", n.dir)...).CombinedOutput()
	return string(out), err
}

// cell runs roost cell on a central manager.
func (h *cellHosts) cell(on string, args ...string) (string, error) {
	args = append([]string{"netns", "exec", h.net.space(on), h.roost, "cell"}, args...)
	out, err := exec.CommandContext(h.Context(), "ip", append(args, "--config", h.nodes[on].dir+".hcl")...).CombinedOutput()
	return string(out), err
}

func (h *cellHosts) status(on string) (s standing) {
	if out, err := h.cell(on, "--json"); err == nil {
		json.Unmarshal([]byte(out), &s)
	}
	return s
}

// whole waits until there are three that vote, and all are there.
func (h *cellHosts) whole() {
	h.Helper()
	h.await("a whole cell", func() bool { s := h.status("central1"); return s.Spare == 1 && len(s.Members) == 3 && s.leader() != "" })
}

// leading waits until there is a leader, and says who: a central manager that has just been started does not know it for a moment.
func (h *cellHosts) leading() (name string) {
	h.Helper()
	h.await("somebody leads", func() bool { name = h.status("central1").leader(); return name != "" })
	return name
}

// others are the three but for one.
func others(but string) []string {
	return slices.DeleteFunc([]string{"central1", "central2", "central3"}, func(c string) bool { return c == but })
}

// block drops what the hosts send to those others, or lets it pass again.
func (h *cellHosts) block(from, to []string, drop bool) {
	verb := "del"
	if drop {
		verb = "add"
	}
	for _, a := range from {
		for _, b := range to {
			h.net.ip("-n", h.net.space(a), "route", verb, "blackhole", h.where[b]+"/32")
		}
	}
}

func (h *cellHosts) leaderIsKilled() {
	old := h.leading()
	before := h.batch("killed-before")
	held, removed := h.fenced("killed-held", "exec1"), h.fenced("killed-removed", "exec2")
	h.nodes[old].kill()
	h.stop(held, "hold")
	h.stop(removed, "rm")
	after := h.batch("killed-after")
	h.done(before)
	h.done(after)
	h.release(held)
	h.nodes[old].start()
}

func (h *cellHosts) leaderIsIsolated() {
	old := h.leading()
	held, removed := h.fenced("isolated-held", "exec1"), h.fenced("isolated-removed", "exec2")
	here, there := []string{old, "submit", "exec1"}, append(others(old), "exec2")
	h.block(here, there, true)
	h.block(there, here, true)
	h.await("the others elect one", func() bool {
		now := h.status(there[0])
		return now.leader() != "" && now.leader() != old && now.Spare == 0
	})
	h.stop(held, "hold") // some of its tasks are on the other side
	h.stop(removed, "rm")
	b := h.batch("isolated")
	if got := h.status(old); got.Spare != -1 {
		h.Errorf("the old leader says that it can spare %d", got.Spare)
	}
	rest(h.Context(), 2*time.Second)
	if text, _ := os.ReadFile(h.hosts.ledger(b.name)); len(text) > 0 {
		h.Errorf("a leader without a majority has had tasks started:\n%s", text)
	}
	h.block(here, there, false)
	h.block(there, here, false)
	h.release(held)
	h.done(b)
}

func (h *cellHosts) minorityIsIsolated() {
	follower := others(h.leading())[0]
	h.net.cut(follower)
	h.done(h.batch("minority"))
	h.net.mend(follower)
}

func (h *cellHosts) linkIsCutOneWay() {
	for _, out := range []bool{true, false} {
		h.whole()
		old := h.leading()
		from, to := []string{old}, others(old)
		if !out {
			from, to = to, from
		}
		h.block(from, to, true)
		h.done(h.batch(fmt.Sprintf("one-way-%v", out)))
		h.block(from, to, false)
	}
}

func (h *cellHosts) linkFlaps() {
	b := h.batch("flaps")
	for range 8 {
		flapping := h.status("central1").leader()
		if flapping == "" {
			flapping = "central1"
		}
		h.net.cut(flapping)
		rest(h.Context(), 400*time.Millisecond)
		h.net.mend(flapping)
		rest(h.Context(), 300*time.Millisecond)
	}
	h.done(b)
	h.done(h.batch("flapped"))
}

func (h *cellHosts) diskIsWiped() {
	victim := others(h.leading())[0]
	id := func() string {
		for _, m := range h.status("central1").Members {
			if m.Name == victim && (m.Role == "follower" || m.Role == "leader") {
				return m.ID
			}
		}
		return ""
	}
	former := id()
	h.nodes[victim].kill()
	if err := os.RemoveAll(filepath.Join(h.nodes[victim].dir, "negotiator")); err != nil {
		h.Fatal(err)
	}
	b := h.batch("wiped")
	h.nodes[victim].start()
	h.await(victim+" votes under a new id", func() bool { now := id(); return now != "" && now != former })
	h.done(b)
}

func (h *cellHosts) memberIsReplaced() {
	h.central(filepath.Join(h.dir, "ca"), "central4")
	h.nodes["central4"].start()
	h.await("central4 is taken in", func() bool {
		_, err := h.cell("central1", "add", centrals["central4"]+":9702")
		return err == nil
	})
	b := h.batch("replaced")
	h.await("central3 is removed", func() bool {
		out, err := h.cell("central1", "remove", "central3")
		return err == nil || strings.Contains(out, "no member")
	})
	h.nodes["central3"].stop()
	h.done(b)
	h.done(h.batch("after"))
}
