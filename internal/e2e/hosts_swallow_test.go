package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A node on which every task fails at once is drained by itself, with the reason in the negotiator's log, and all jobs end well on the other.
func TestNodeSwallows(t *testing.T) {
	h := startHosts(t)
	var jobs []string
	for i := range 4 {
		jobs = append(jobs, h.submit(fmt.Sprintf(`job "swallowed%d" {
  script  = "test $ROOST_NODE != exec1 && sleep 0.3"
  count   = 6
  cpus    = %d
  retries = 20
}`, i, i%2+1)))
	}
	drained := func() bool {
		said := h.nodes["central"].said()
		return strings.Contains(said, "swallows tasks and is drained") && strings.Contains(said, "node=exec1")
	}
	h.awaitFor(60*time.Second, "exec1 is drained", drained)
	for _, id := range jobs {
		h.awaitFor(60*time.Second, id+" has ended", func() bool { return h.show(id).State == "completed" })
	}
	if strings.Contains(h.nodes["central"].said(), "node=exec2 until") {
		t.Error("exec2 is drained, where all goes well")
	}
}
