package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// TestANodeAtAnothersAddress cuts off an execute node with a running task, and starts
// another node of the pool at its address. The schedd must not confuse them: it starts no
// second attempt there, and resumes with the first one when its node is back.
func TestANodeAtAnothersAddress(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT: no network namespaces, so that no node takes another's address")
	}
	h := startHosts(t)
	id := h.submitJob(`job "mine" {
  command      = ["sleep", "600"]
  requirements = "Machine == \"exec1\" || Machine == \"exec3\""
}`)
	h.awaitTrue("it runs", func() bool { return h.showTask(id).State == "running" })
	h.net.unplug("exec1")
	taker := h.addExecuteNode("exec3", "10.111.0.11",
		h.issueCertificate(filepath.Join(h.dir, "ca"), "exec3", peer.Startd))
	taker.start()
	h.awaitTrue("the third node", func() bool { return strings.Contains(strings.Join(h.machineNames(), " "), "exec3") })
	h.net.runIP("-n", h.net.namespaceName("submit"), "neigh", "flush", "all")
	// the schedd sends a message to the node; the other host does not know the connection
	h.runAs(someone, "suspend", id)
	submit := h.nodes["submit"]
	h.awaitTrue("the schedd finds somebody else", func() bool {
		return strings.Contains(submit.logText(), "exec3 answers there, and exec1 was wanted")
	})
	if state := h.showTask(id); state.Attempt != 1 || state.Node != "exec1" ||
		strings.Contains(submit.logText(), "attempt lost") {
		t.Errorf("with another node at its address: %+v", state)
	}
	taker.stopMaster()
	h.net.unplug("exec3")
	h.net.replug("exec1")
	for _, host := range []string{"submit", "central"} {
		h.net.runIP("-n", h.net.namespaceName(host), "neigh", "flush", "all")
	}
	h.runAs(someone, "resume", id)
	h.mustAs("rm", id)
	h.awaitTrue("its own node ends it", func() bool { return h.showTask(id).State == "removed" })
	if strings.Contains(submit.logText(), "attempt="+strings.Replace(id, ".", "[0].", 1)+"/2") {
		t.Error("there was a second attempt")
	}
}
