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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
)

// TestAccountAttacks has a submit node name groups and users that are not its to name, and a user have tasks fail that are the user's own fault. Nobody gets
// another's rights, every refusal says why, and no execute node loses its good name for it.
func TestAccountAttacks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so tasks have no users of their own")
	}
	h := bareHosts(t, special{tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.execute("exec1", "10.111.0.11", h.issue(ca, "exec1", auth.Startd))
	h.add("exec2", "10.111.0.12", h.issue(ca, "exec2", auth.Startd), func(n *config.Node) {
		d := config.Startd{Name: "exec2", Listen: []string{"10.111.0.12:9703"}, Accounts: config.Accounts{Users: config.SlotUser}}
		d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
		n.Startds = []config.Startd{d}
	})
	h.nodes["submit"].attack = []attack.Attack{attack.OtherGID}
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		h.nodes[name].start()
	}
	h.await("both execute nodes", func() bool { return slices.Equal(h.machines(), []string{"exec1", "exec2"}) })
	for _, part := range []struct {
		name string
		run  func(*hosts)
	}{{"other gid", (*hosts).namesAnotherGroup}, {"slot user", (*hosts).runsAsSlotUser}, {"impossible uid", (*hosts).namesAnImpossibleUser}, {"busy program", (*hosts).keepsItsProgramBusy}} {
		if !t.Run(part.name, func(t *testing.T) { part.run(h.in(t)) }) {
			h.tell()
			break
		}
	}
	if said := h.nodes["central"].said(); strings.Contains(said, "is drained") || strings.Contains(said, "are kept from a node") {
		t.Errorf("a node is blamed for what others have done:\n%s", said)
	}
}

// restart has the submit node attack in another way.
func (h *hosts) restart(attacks ...attack.Attack) {
	n := h.nodes["submit"]
	n.stop()
	n.attack = attacks
	n.start()
	h.await("the submit node", func() bool { _, _, code := h.as(someone, "jobs"); return code == 0 })
}

// namesAnotherGroup asks for claims in group 42, shadow.
func (h *hosts) namesAnotherGroup() {
	stdout, stderr, _ := h.as(someone, "run", "-q", "--requirements", `Machine == "exec1"`, "--", "sh", "-c", "id -u; id -g; id -G; head -1 /etc/shadow")
	if stdout != "12345\n12345\n12345\n" || !strings.Contains(stderr, "Permission denied") {
		h.Errorf("got %q, %q", stdout, stderr)
	}
}

// runsAsSlotUser is no attack: on a machine with slot users a task has nobody's rights, and its output is its user's all the same.
func (h *hosts) runsAsSlotUser() {
	h.restart()
	stdout, stderr, code := h.as(someone, "run", "-q", "--requirements", `Machine == "exec2"`, "--", "sh", "-c", "id -u; id -g; id -G; echo mine >made; stat -c %u .")
	words := strings.Fields(stdout)
	if code != 0 || len(words) != 4 || !strings.HasPrefix(words[0], "190") || slices.ContainsFunc(words, func(w string) bool { return w != words[0] }) {
		h.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(h.home, "made"), &st); err != nil || st.Uid != someone.uid || h.read("made") != "mine\n" {
		h.Errorf("its output: %v, uid %d's", err, st.Uid)
	}
}

// namesAnImpossibleUser asks for claims for a uid that setuid(2) refuses.
func (h *hosts) namesAnImpossibleUser() {
	h.restart(attack.ImpossibleUID)
	id := h.submit(`job "impossible" { command = ["true"] }`)
	h.await("roost why tells of the refusal", func() bool {
		why, _, _ := h.as(someone, "why", id)
		return strings.Contains(why, "uid 4294967295") && strings.Contains(why, "to the kernel that is no user")
	})
	if now := h.show(id); now.State != "idle" || now.Attempt != 0 {
		h.Errorf("got %+v", now)
	}
	h.must("rm", id)
}

// keepsItsProgramBusy has jobs of one user whose program that user keeps open for writing.
func (h *hosts) keepsItsProgramBusy() {
	h.restart()
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
		jobs = append(jobs, h.submit(fmt.Sprintf("job \"busy%d\" {\n  command = [%q]\n  requirements = \"Machine == \\\"exec1\\\"\"\n}", i, path)))
	}
	for _, id := range jobs {
		h.await(id+" has failed twice", func() bool { return h.show(id).Attempt >= 2 || h.show(id).State == "held" })
	}
	for _, id := range jobs {
		h.must("rm", id)
	}
}
