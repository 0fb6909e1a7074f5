//go:build plants

package sim

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// TestMutantsAreReported holds that a planted bug ends the search with its shortest story
// and a command to replay it.
func TestMutantsAreReported(t *testing.T) {
	mutant.Activate(mutant.EndBeforeOutput)
	defer mutant.Activate(0)
	a, stdout, stderr := newSimApp(t, t.TempDir())
	code := a.Run(t.Context(), strings.Fields("roost sim faults --seeds 50 --jobs 4"))
	for _, part := range []string{"1 broke a promise", "P11 is broken. The shortest story of it:", "\n  1. ",
		"So P11 is broken at", "To play it again: roost sim faults --seeds 1 --from ", " --jobs 4\n"} {
		if !strings.Contains(stdout.String(), part) {
			t.Errorf("it does not say %q", part)
		}
	}
	if code != 1 || t.Failed() {
		t.Errorf("exit status %d, stdout:\n%s\nstderr:\n%s", code, stdout, stderr)
	}
}
