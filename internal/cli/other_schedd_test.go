package cli

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
)

// TestSchedd holds that this machine's schedd never does a command for a node where
// nobody is logged in.
func TestSchedd(t *testing.T) {
	for _, line := range []string{"roost --schedd n2 rm 62", "roost --schedd=n2 run -- /bin/true",
		"roost --schedd n2 hold all", "qdel 62@n2x"} {
		f := clitest.SampleJobs()
		a, _, stderr := newFullApp(t, f.Serve(t))
		code := a.Run(t.Context(), strings.Fields(line))
		if strings.HasPrefix(line, "qdel") { // the schedd is told whose it is, and refuses
			if len(f.Acted) != 1 || f.Acted[0].GetSelection().GetSelectors()[0] != "62.n2x" {
				t.Errorf("%s: it was asked %v", line, f.Acted)
			}
			continue
		}
		if code == 0 || len(f.Acted)+len(f.Submitted) > 0 {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}
