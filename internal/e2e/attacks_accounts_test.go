package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// TestAccountAttacks checks two abuses of accounts. A submit node names groups and users
// that are not its own, and a user's tasks fail through the user's own fault. Nobody may
// get another's rights, every refusal must have a reason, and no execute node may be
// blamed.
func TestAccountAttacks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so tasks have no users of their own")
	}
	h := bareHosts(t, hostPoolOptions{tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.addExecuteNode("exec1", "10.111.0.11", h.issueCertificate(ca, "exec1", peer.Startd))
	h.addHost("exec2", "10.111.0.12", h.issueCertificate(ca, "exec2", peer.Startd), func(n *config.Node) {
		d := config.StartdSettings{Name: "exec2", Listen: []string{"10.111.0.12:9703"},
			Accounts: config.TaskAccounts{Users: config.SlotUser}}
		d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
		n.Startds = []config.StartdSettings{d}
	})
	h.nodes["submit"].attackName = []attack.AttackKind{attack.SystemGID}
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		h.nodes[name].start()
	}
	h.awaitTrue("both execute nodes", func() bool { return slices.Equal(h.machineNames(), []string{"exec1", "exec2"}) })
	for _, part := range []struct {
		name string
		run  func(*hostPool)
	}{{"other gid", (*hostPool).namesAnotherGroup}, {"slot user", (*hostPool).runsAsSlotUser},
		{"impossible uid", (*hostPool).namesAnImpossibleUser}, {"busy program", (*hostPool).executableIsBusy}} {
		if !t.Run(part.name, func(t *testing.T) { part.run(h.forSubtest(t)) }) {
			h.printLogs()
			break
		}
	}
	if answer := h.nodes["central"].logText(); strings.Contains(answer, "is drained") ||
		strings.Contains(answer, "are kept from a node") {
		t.Errorf("a node is blamed for what others have done:\n%s", answer)
	}
}

// restartHostile restarts the submit node with other attacks.
func (h *hostPool) restartHostile(attacks ...attack.AttackKind) {
	n := h.nodes["submit"]
	n.stopMaster()
	n.attackName = attacks
	n.start()
	h.awaitTrue("the submit node", func() bool { _, _, code := h.runAs(someone, "jobs"); return code == 0 })
}

// namesAnotherGroup requests claims in group 42, shadow.
func (h *hostPool) namesAnotherGroup() {
	stdout, stderr, _ := h.runAs(someone, "run", "-q", "--requirements", `Machine == "exec1"`, "--", "sh", "-c",
		"id -u; id -g; id -G; head -1 /etc/shadow")
	if stdout != "12345\n12345\n12345\n" || !strings.Contains(stderr, "Permission denied") {
		h.Errorf("got %q, %q", stdout, stderr)
	}
}

// runsAsSlotUser is no attack. On a machine with slot users a task has the rights of no
// user, and its output still belongs to its user.
func (h *hostPool) runsAsSlotUser() {
	h.restartHostile()
	stdout, stderr, code := h.runAs(someone, "run", "-q", "--requirements", `Machine == "exec2"`, "--", "sh", "-c",
		"id -u; id -g; id -G; echo mine >made; stat -c %u .")
	words := strings.Fields(stdout)
	if code != 0 || len(words) != 4 || !strings.HasPrefix(words[0], "190") ||
		slices.ContainsFunc(words, func(w string) bool {
			return w != words[0]
		}) {
		h.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(h.home, "made"), &st); err != nil || st.Uid != someone.uid ||
		h.readOutputFile("made") != "mine\n" {
		h.Errorf("its output: %v, uid %d's", err, st.Uid)
	}
}

// namesAnImpossibleUser requests claims for a uid that setuid(2) refuses.
func (h *hostPool) namesAnImpossibleUser() {
	h.restartHostile(attack.ImpossibleUID)
	id := h.submitJob(`job "impossible" { command = ["true"] }`)
	h.awaitTrue("roost why tells of the refusal", func() bool {
		why, _, _ := h.runAs(someone, "why", id)
		return strings.Contains(why, "uid 4294967295") && strings.Contains(why, "to the kernel that is no user")
	})
	if now := h.showTask(id); now.State != "idle" || now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.mustAs("rm", id)
}

// executableIsBusy submits jobs of a user who keeps the program open for writing.
func (h *hostPool) executableIsBusy() {
	h.restartHostile()
	path := filepath.Join(h.dir, "busy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		h.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		h.Fatal(err)
	}
	defer f.Close()
	var jobs []string
	for i := range 6 {
		jobs = append(jobs, h.submitJob(fmt.Sprintf(
			"job \"busy%d\" {\n  command = [%q]\n  requirements = \"Machine == \\\"exec1\\\"\"\n}", i, path,
		)))
	}
	for _, id := range jobs {
		// the last ones may be kept from the machine on which the first ones have failed,
		// before they have run there at all
		h.awaitTrue(id+" has failed", func() bool {
			now := h.showTask(id)
			if now.Attempt == 0 && now.State == "idle" && id != jobs[0] {
				return strings.Contains(h.mustAs("show", id), "is kept apart from its tasks, which keep failing there")
			}
			return now.Attempt >= 2 || now.Attempt == 1 && now.State == "idle" || now.State == "held"
		})
	}
	for _, id := range jobs {
		h.mustAs("rm", id)
	}
}
