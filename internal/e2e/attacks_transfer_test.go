package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/attack"
)

// TestExtraOutputs holds that a node which sends files that nobody has asked for brings none of them to the user's directory: its attempts are not completed, the
// log says what came, and another node runs the tasks.
func TestExtraOutputs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: NOT ROOT, so there are no hosts; a node that sends what nobody has asked for is not tried")
	}
	h := bareHosts(t, special{tags: []string{"attacks"}})
	ca := filepath.Join(h.dir, "ca")
	h.execute("exec1", "10.111.0.11", h.issue(ca, "exec1", "startd"))
	h.execute("exec2", "10.111.0.12", h.issue(ca, "exec2", "startd")).attack = []attack.Attack{attack.ExtraOutputs}
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		h.nodes[name].start()
	}
	h.await("both execute nodes", func() bool { return len(h.machines()) == 2 })
	id := h.submit(`job "work" {
  script  = "echo $ROOST_NODE > result-$ROOST_TASK_INDEX.txt"
  outputs = ["result-*.txt"]
  count   = 4
  cpus    = 4
}`)
	h.await("its tasks are completed", func() bool { return strings.Contains(h.must("show", id), "completed") && len(h.results()) == 4 })
	if _, err := os.Lstat(filepath.Join(h.home, ".ssh")); !os.IsNotExist(err) || h.drafts(h.home) {
		t.Errorf("what nobody has asked for is in the user's directory: %v", err)
	}
	for _, name := range h.results() {
		if on := strings.TrimSpace(h.read(name)); on != "exec1" {
			t.Errorf("%s is of %s", name, on)
		}
	}
	said := h.nodes["submit"].said()
	for _, part := range []string{`level=WARN msg="a node did not send the output that was asked for"`, "node=exec2", "file=.ssh/authorized_keys", "nobody has asked for it"} {
		if !strings.Contains(said, part) {
			t.Errorf("the submit node did not log %s", part)
		}
	}
}

// results are the files that came home.
func (h *hosts) results() (names []string) {
	found, _ := filepath.Glob(filepath.Join(h.home, "result-*.txt"))
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}
