package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNodeSwallows checks a node on which every task fails at once. While one user is
// affected, that user's jobs are kept away from it. When another user is, too, the node
// is drained automatically, with the reason in the negotiator's log. All jobs complete on
// the other node.
func TestNodeSwallows(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	const text = `job "swallowed%d" {
  script  = "test $ROOST_NODE != exec1 && sleep 0.3"
  count   = 6
  cpus    = %d
  retries = 20
}`
	logged := func(what string) func() bool {
		return func() bool {
			for line := range strings.Lines(h.nodes["central"].logText()) {
				if strings.Contains(line, what) && strings.Contains(line, "node=exec1") {
					return true
				}
			}
			return false
		}
	}
	var jobs []string
	for i := range 4 {
		jobs = append(jobs, h.submitJob(fmt.Sprintf(text, i, i%2+1)))
	}
	const drained = "is a black hole and is drained"
	h.awaitTrue("exec1 is avoided by the one user",
		logged("the jobs of one submitter are kept from a node"))
	if logged(drained)() {
		t.Error("exec1 is drained, and one user alone has met with failures there")
	}
	path := filepath.Join(h.dir, "another.hcl")
	many := strings.Replace(text, "= 6", "= 60", 1) // exec2 alone could be done with a few of them
	if err := os.WriteFile(path, fmt.Appendf(nil, many, 4, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := h.runAs(commandUser{54321, 54321}, "submit", path); code != 0 {
		t.Fatalf("another user submits: exit %d\n%s%s", code, stdout, stderr)
	}
	h.awaitTrue("exec1 is drained", logged(drained))
	for _, id := range jobs {
		h.awaitTrue(id+" has ended", func() bool { return h.showTask(id).State == "completed" })
	}
	if strings.Contains(h.nodes["central"].logText(), "node=exec2 until") {
		t.Error("exec2 is drained, where all goes well")
	}
}
