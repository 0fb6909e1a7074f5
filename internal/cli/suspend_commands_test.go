package cli

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSuspendAndResume holds what the verbs that freeze and thaw ask the schedd, in both
// families.
func TestSuspendAndResume(t *testing.T) {
	for line, want := range map[string]wire.ActRequest_Verb{
		"roost suspend --yes 63": wire.ActRequest_SUSPEND, "roost resume --yes 63": wire.ActRequest_RESUME,
		"qsig -s suspend 63": wire.ActRequest_SUSPEND, "qsig -s resume 63": wire.ActRequest_RESUME,
		"qsig -s KILL 63": wire.ActRequest_SIGNAL, "qsig 63": wire.ActRequest_SIGNAL, "qsig -x 63": 0,
	} {
		f := clitest.SampleJobs()
		a, _, stderr := newFullApp(t, f.Serve(t))
		code := a.Run(t.Context(), strings.Fields(line))
		if want == 0 {
			if code == 0 || len(f.Acted) > 0 {
				t.Errorf("%s: it was done", line)
			}
			continue
		}
		if code != 0 || len(f.Acted) != 1 || f.Acted[0].GetVerb() != want {
			t.Errorf("%s: got %d, %v (%s)", line, code, f.Acted, stderr)
		}
	}
}
