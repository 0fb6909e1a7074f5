package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/auth"
)

// TestHostileImages has a node forge the images of its tasks, whose key it has, so that they come back with the rights of root. The next node refuses each before
// a process of it runs, the task starts again from the beginning, and the submit node suspects the node that made the image, not the one that refused it alone.
func TestHostileImages(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; forged images are not tried")
	}
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no checkpoint is taken, and nothing is restored: %v", err)
	}
	for forged, reason := range map[attack.Attack]string{attack.ForgedUID: "has uid 0", attack.ForgedCapabilities: "has capabilities"} {
		t.Run(strings.TrimPrefix(string(forged), "startd."), func(t *testing.T) { forgesImages(t, forged, reason) })
	}
}

func forgesImages(t *testing.T, forged attack.Attack, reason string) {
	h := bareHosts(t, special{grouped: true, tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.execute("exec1", "10.111.0.11", h.issue(ca, "exec1", auth.Startd)).attack = []attack.Attack{forged}
	h.execute("exec2", "10.111.0.12", h.issue(ca, "exec2", auth.Startd))
	for _, name := range []string{"central", "submit", "exec1"} {
		h.nodes[name].start()
	}
	h.await("the hostile node", func() bool { return len(h.machines()) == 1 })
	stop := filepath.Join(h.home, "stop")
	id := h.submit(`job "counts" {
  command    = ["sh", "-c", "echo $(id -u) begins; while ! [ -e ` + stop + ` ]; do sleep 0.1; done; echo $(id -u) ends; grep CapEff /proc/self/status"]
  checkpoint {}
}`)
	h.await("it runs on the hostile node", func() bool { now := h.show(id); return now.State == "running" && now.Node == "exec1" })
	h.await("it is saved there", func() bool { _, _, code := h.as(someone, "checkpoint", id); return code == 0 })
	h.nodes["exec2"].start()
	h.await("the other node", func() bool { return len(h.machines()) == 2 })
	h.nodes["exec1"].stop()
	h.logs(`msg="a node has made a checkpoint that is not of its task" daemon=schedd node=exec1`, `"refused by"=exec2`, reason)
	h.await("it runs on the other node", func() bool {
		now := h.show(id)
		return now.State == "running" && now.Node == "exec2" && now.Attempt >= 3
	})
	if err := os.WriteFile(stop, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	h.await("it is completed", func() bool { return h.show(id).State == "completed" })
	out, _, _ := h.as(someone, "logs", id)
	if !strings.Contains(out, "12345 begins\n12345 ends\n") || !strings.Contains(out, "CapEff:\t0000000000000000\n") {
		t.Errorf("it printed %q", out)
	}
}
