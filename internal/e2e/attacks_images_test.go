package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// TestHostileImages lets a node forge the images of its tasks so that they restore with
// root's rights. The node has the images' key. The next node must refuse each image
// before running any of its processes. The task starts again from the beginning, and the
// submit node blames the node that made the image, not the one that refused it.
func TestHostileImages(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; forged images are not tried")
	}
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no checkpoint is taken, and nothing is restored: %v", err)
	}
	for forged, reason := range map[attack.AttackKind]string{attack.ForgedUID: "has uid 0",
		attack.ForgedCapabilities: "has capabilities"} {
		t.Run(strings.TrimPrefix(string(forged), "startd."), func(t *testing.T) { forgesImages(t, forged, reason) })
	}
}

func forgesImages(t *testing.T, forged attack.AttackKind, reason string) {
	h := bareHosts(t, hostPoolOptions{sharesCgroups: true, tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.addExecuteNode("exec1", "10.111.0.11",
		h.issueCertificate(ca, "exec1", peer.Startd)).attackName = []attack.AttackKind{forged}
	h.addExecuteNode("exec2", "10.111.0.12", h.issueCertificate(ca, "exec2", peer.Startd))
	for _, name := range []string{"central", "submit", "exec1"} {
		h.nodes[name].start()
	}
	h.awaitTrue("the hostile node", func() bool { return len(h.machineNames()) == 1 })
	stop := filepath.Join(h.home, "stop")
	id := h.submitJob(`job "counts" {
  command    = ["sh", "-c", "echo $(id -u) begins; while ! [ -e ` + stop + ` ]; do sleep 0.1; done; echo $(id -u) ends; grep CapEff /proc/self/status"]
  checkpoint {}
}`)
	h.awaitTrue("it runs on the hostile node", func() bool {
		now := h.showTask(id)
		return now.State == "running" && now.Node == "exec1"
	})
	h.awaitTrue("it is saved there", func() bool { _, _, code := h.runAs(someone, "checkpoint", id); return code == 0 })
	h.nodes["exec2"].start()
	h.awaitTrue("the other node", func() bool { return len(h.machineNames()) == 2 })
	h.nodes["exec1"].stopMaster()
	h.expectLogged(`msg="a node has made a checkpoint that is not of its task" daemon=schedd node=exec1`,
		`"refused by"=exec2`, reason)
	h.awaitTrue("it runs on the other node", func() bool {
		now := h.showTask(id)
		return now.State == "running" && now.Node == "exec2" && now.Attempt >= 3
	})
	if err := os.WriteFile(stop, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	h.awaitTrue("it is completed", func() bool { return h.showTask(id).State == "completed" })
	out, _, _ := h.runAs(someone, "logs", id)
	if !strings.Contains(out, "12345 begins\n12345 ends\n") || !strings.Contains(out, "CapEff:\t0000000000000000\n") {
		t.Errorf("it printed %q", out)
	}
}
