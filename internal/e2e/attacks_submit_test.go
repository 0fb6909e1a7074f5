package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// hostileSubmit is a pool in which one of two submit nodes is hostile.
type hostileSubmit struct {
	*hostPool
	rogue  *hostPool // the pool as users of the hostile submit node see it
	victim string    // id of a job of the other submit node
}

// TestHostileSubmitNodes lets a submit node attack execute nodes, the leader and the
// other submit node. No attack may affect the other's task, reveal anything of it, or
// stop its jobs. Each refusal is logged where it was made.
func TestHostileSubmitNodes(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; hostile submit nodes are not tried")
	}
	h := startHostileSubmit(t)
	for _, part := range []struct {
		attack attack.AttackKind
		run    func(*hostileSubmit)
	}{
		{attack.NoGrant, (*hostileSubmit).claimsWithoutGrants}, {attack.UsedGrants, (*hostileSubmit).usesGrantsAgain},
		{attack.OtherClaims, (*hostileSubmit).ordersOthersTasks},
		{attack.OtherSchedd, (*hostileSubmit).takesAName}, {attack.LongOrders, (*hostileSubmit).ordersTooMuch},
		{attack.EndlessOrders, (*hostileSubmit).ordersWithoutEnd},
		{attack.LongRequests, (*hostileSubmit).asksTooMuch}, {attack.ManyRequests, (*hostileSubmit).asksWithoutEnd},
		{attack.HigherBand, (*hostileSubmit).asksInAHigherBand},
		{attack.OtherJobs, (*hostileSubmit).actsOnOthersJobs},
	} {
		name, _ := strings.CutPrefix(string(part.attack), "schedd.")
		if !t.Run(name, func(t *testing.T) { h.in(t, part.attack, part.run) }) {
			h.printLogs()
			break
		}
	}
	for name, daemons := range map[string]int{"central": 2, "submit": 1, "exec1": 1} {
		if answer := h.nodes[name].logText(); strings.Count(answer, "msg=serves daemon=master") != daemons {
			t.Errorf("the daemons of %s did not live on:\n%s", name, answer)
		}
	}
}

func startHostileSubmit(t *testing.T) *hostileSubmit {
	h := bareHosts(t, hostPoolOptions{tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.addExecuteNode("exec1", "10.111.0.11", h.issueCertificate(ca, "exec1", peer.Startd))
	for name, address := range map[string]string{"submit": "10.111.0.2", "rogue": "10.111.0.3"} {
		tls := h.issueCertificate(ca, name, peer.Schedd)
		schedd := func(n *config.Node) {
			n.Schedd = &config.ScheddSettings{SocketMode: 0o666, Listen: []string{address + ":9705"}}
		}
		if name == "rogue" {
			h.addHost(name, address, tls, schedd)
			continue
		}
		schedd(h.nodes[name].node)
		if err := os.WriteFile(h.nodes[name].dir+".hcl", config.Write(h.nodes[name].node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"central", "submit", "exec1"} {
		h.nodes[name].start()
	}
	h.awaitTrue("the execute node", func() bool { return slices.Equal(h.machineNames(), []string{"exec1"}) })
	s := &hostileSubmit{hostPool: h}
	s.victim = h.submitJob(`job "victim" {
  command     = ["sleep", "1000"]
  environment = { TOKEN = "hunter2" }
  cpus        = 4
}`)
	h.awaitTrue("it runs", func() bool { return h.showTask(s.victim).State == "running" })
	return s
}

// in runs a part with one attack of the hostile submit node, and checks that the other's
// task is unharmed.
func (h *hostileSubmit) in(t *testing.T, a attack.AttackKind, part func(*hostileSubmit)) {
	now := *h
	now.hostPool = h.hostPool.forSubtest(t)
	now.rogue = h.hostPool.forSubtest(t)
	now.rogue.nodes = maps.Clone(h.nodes)
	rogue := h.nodes["rogue"]
	now.rogue.nodes["submit"] = rogue
	rogue.attackName = []attack.AttackKind{a}
	rogue.start()
	defer rogue.stopMaster()
	now.awaitTrue("the hostile submit node", func() bool {
		_, _, code := now.rogue.runAs(someone, "jobs")
		return code == 0
	})
	part(&now)
	if state := now.showTask(h.victim); state.State != "running" || state.Attempt != 1 {
		t.Errorf("the other's task is %+v", state)
	}
	if out, _, _ := now.runAs(someone, "logs", h.victim); strings.Contains(out, "attacked") {
		t.Errorf("its output is %q", out)
	}
}

// saysOn waits until a node has logged all of these texts.
func (h *hostileSubmit) saysOn(node string, parts ...string) {
	h.Helper()
	for _, part := range parts {
		h.awaitTrue(node+" logs "+part, func() bool { return strings.Contains(h.nodes[node].logText(), part) })
	}
}

// goesOn checks that the next job of the other submit node runs.
func (h *hostileSubmit) goesOn() {
	h.Helper()
	if out := h.mustAs("run", "-q", "--", "echo", "well"); out != "well\n" {
		h.Errorf("the next job of the other printed %q", out)
	}
}

// finishes runs a job of the hostile submit node, which it may do.
func (h *hostileSubmit) finishes() {
	h.Helper()
	if out := h.rogue.mustAs("run", "-q", "--", "echo", "own"); out != "own\n" {
		h.Errorf("its own job printed %q", out)
	}
}

func (h *hostileSubmit) claimsWithoutGrants() {
	h.finishes()
	h.saysOn("exec1", `msg="claim refused"`,
		"not made for this machine since its startd started, or not for this schedd")
}

func (h *hostileSubmit) usesGrantsAgain() {
	id := h.rogue.submitJob(singleTaskOn("own", `["sleep", "600"]`, "exec1"))
	h.saysOn("exec1", "used before", "not made for this machine")
	h.rogue.runAs(someone, "rm", id)
	grants := map[string]bool{}
	for line := range strings.Lines(h.nodes["exec1"].logText()) {
		if _, claim, made := strings.Cut(line, `msg="claim made"`); made {
			_, grant, _ := strings.Cut(claim, " grant=")
			if grant, _, _ = strings.Cut(grant, " schedd="); grants[grant] {
				h.Errorf("it was claimed twice with grant %s", grant)
			}
			grants[grant] = true
		}
	}
}

func (h *hostileSubmit) ordersOthersTasks() {
	h.awaitTrue("exec1 logs it", func() bool { // of many refusals in a second, only some are logged
		h.finishes()
		answer := h.nodes["exec1"].logText()
		return strings.Contains(answer, "refused to give up a claim") && strings.Contains(answer, "activation refused")
	})
	h.saysOn("exec1", "rogue may not speak for it",
		"refused a call of /roost.wire.Startd/Tail", "refused a call of /roost.wire.Startd/Fetch",
		"refused a call of /roost.wire.Startd/FetchImage",
		"refused a call of /roost.wire.Startd/Put", "refused a call of /roost.wire.Startd/Shell")
}

func (h *hostileSubmit) takesAName() {
	id := h.rogue.submitJob(singleTaskOn("own", `["true"]`, "exec1"))
	h.saysOn("central", "refused a call of /roost.wire.Negotiator/Negotiate",
		"rogue may only speak for its own schedds")
	h.saysOn("exec1", "refused a call of /roost.wire.Startd/Session")
	if now := h.rogue.showTask(id); now.Attempt != 0 {
		h.Errorf("its own task is %+v", now)
	}
	h.rogue.mustAs("rm", id)
	h.goesOn()
}

func (h *hostileSubmit) ordersTooMuch() {
	id := h.rogue.submitJob(singleTaskOn("own", `["true"]`, "exec1"))
	h.saysOn("exec1", "refused a message that is too long")
	h.rogue.mustAs("rm", id)
	h.goesOn()
}

// ordersWithoutEnd checks that a sender of more orders than a startd can handle waits,
// and others do not.
func (h *hostileSubmit) ordersWithoutEnd() {
	id := h.rogue.submitJob(singleTaskOn("own", `["sleep", "600"]`, "exec1"))
	h.awaitTrue("its task runs", func() bool { return h.rogue.showTask(id).State == "running" })
	for range 3 {
		h.goesOn()
	}
	if used := resident(h.T, h.nodes["exec1"].daemonPID("startd")); used > 512<<20 {
		h.Errorf("the startd holds %d MiB", used>>20)
	}
	h.rogue.runAs(someone, "rm", id)
}

func (h *hostileSubmit) asksTooMuch() {
	h.saysOn("central", "refused a message that is too long")
	h.goesOn()
}

func (h *hostileSubmit) asksWithoutEnd() {
	h.saysOn("central", "the ads of its requests have")
	for range 3 {
		h.goesOn()
	}
}

// asksInAHigherBand checks that band monitoring needs a quota. The task of another user
// in batch must not be preempted.
func (h *hostileSubmit) asksInAHigherBand() {
	h.administer("central", "cell", "set", "default_quota", "none")
	defer h.administer("central", "cell", "set", "default_quota", "unlimited")
	id := h.rogue.submitJob(`job "higher" {
  command = ["true"]
  band    = "free"
  cpus    = 8
}`)
	h.awaitTrue("it is told why it waits", func() bool {
		why, _, _ := h.rogue.runAs(someone, "why", id)
		return strings.Contains(why, "no quota in band monitoring")
	})
	h.rogue.mustAs("rm", id)
}

func (h *hostileSubmit) actsOnOthersJobs() {
	h.saysOn("submit", "refused a call of /roost.wire.Neighbour/Act", "@rogue lacks the capability")
	h.saysOn("rogue", `msg="attacked: submit nodes were asked"`)
	asked, shown := 0, 0
	for line := range strings.Lines(h.nodes["rogue"].logText()) {
		switch {
		case strings.Contains(line, "attacked: a submit node was asked to act"):
			if asked++; !strings.Contains(line, "permission denied") {
				h.Errorf("the other submit node did as it was asked: %s", line)
			}
		case strings.Contains(line, "attacked: a submit node showed a job"):
			if shown++; strings.Contains(line, "hunter2") {
				h.Errorf("the other submit node shows what is only its users': %s", line)
			}
		}
	}
	if asked == 0 || shown == 0 {
		h.Errorf("it was asked to act %d times, and showed %d jobs", asked, shown)
	}
}

// resident returns the resident memory of a process.
func resident(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "VmRSS:")
	var kib int64
	if _, err := fmt.Sscan(text2, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
