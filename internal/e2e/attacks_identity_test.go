package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/auth"
)

// TestANodeAtAnothersAddress: an execute node is cut off while it runs a task, and an honest one of the same pool comes up at its address. The schedd does not
// take the one for the other: it starts no second attempt there, and goes on with the first when its node is back.
func TestANodeAtAnothersAddress(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT: no network namespaces, so that no node takes another's address")
	}
	h := startHosts(t)
	id := h.submit(`job "mine" {
  command      = ["sleep", "600"]
  requirements = "Machine == \"exec1\" || Machine == \"exec3\""
}`)
	h.await("it runs", func() bool { return h.show(id).State == "running" })
	h.net.cut("exec1")
	taker := h.execute("exec3", "10.111.0.11", h.issue(filepath.Join(h.dir, "ca"), "exec3", auth.Startd))
	taker.start()
	h.await("the third node", func() bool { return strings.Contains(strings.Join(h.machines(), " "), "exec3") })
	h.net.ip("-n", h.net.space("submit"), "neigh", "flush", "all")
	h.as(someone, "suspend", id) // the schedd says something to the node, whose connection the other host knows nothing of
	submit := h.nodes["submit"]
	h.await("the schedd finds somebody else", func() bool {
		return strings.Contains(submit.said(), "exec3 answers there, and exec1 was wanted")
	})
	if state := h.show(id); state.Attempt != 1 || state.Node != "exec1" || strings.Contains(submit.said(), "attempt lost") {
		t.Errorf("with another node at its address: %+v", state)
	}
	taker.stop()
	h.net.cut("exec3")
	h.net.mend("exec1")
	for _, host := range []string{"submit", "central"} {
		h.net.ip("-n", h.net.space(host), "neigh", "flush", "all")
	}
	h.as(someone, "resume", id)
	h.must("rm", id)
	h.await("its own node ends it", func() bool { return h.show(id).State == "removed" })
	if strings.Contains(submit.said(), "attempt="+strings.Replace(id, ".", "[0].", 1)+"/2") {
		t.Error("there was a second attempt")
	}
}
