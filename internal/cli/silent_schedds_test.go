package cli

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSilentSchedds holds that a list says whose jobs are missing, and that a question
// about one job of theirs fails.
func TestSilentSchedds(t *testing.T) {
	for _, test := range []struct {
		line        string
		found       bool // the schedds that answer have jobs
		code        int
		says, shows string
	}{
		{"roost jobs", true, 0, "n3 did not answer within 2s: its jobs are not shown\n", "64.pool"},
		{"roost jobs --here", true, 0, "", "64.pool"},
		{"roost jobs --json", true, 0, "", `"unreachable": [`},
		{"roost history", true, 0, "n3 did not answer within 2s: its jobs are not shown\n", "61.pool"},
		{"roost top --all", true, 0, "n3 did not answer within 2s: its jobs are not shown\n", "63[1]"},
		{"roost top --all --json", true, 0, "", `"unreachable": [`},
		{"roost nodes", true, 0, "n3 did not answer within 2s: its jobs are not shown\n", "n10"},
		{"roost show 5.n3", false, 69, "roost: n3 did not answer within 2s\n", ""},
		{"qstat", true, 0, "n3 did not answer within 2s: its jobs are not shown\n", "64.pool"},
		{"qstat @n3", false, 0, "n3 did not answer within 2s: its jobs are not shown\n", ""},
		{"qstat 5.n3", false, 162, "n3 did not answer within 2s\n", ""},
	} {
		f := clitest.SampleJobs()
		if f.Silent = []*wire.Silent{{Node: "n3", Why: "did not answer within 2s"}}; !test.found {
			f.NoJobs = true
		}
		a, stdout, stderr := newFullApp(t, f.Serve(t))
		code := a.Run(t.Context(), strings.Fields(test.line))
		if code != test.code || !strings.HasSuffix(stderr.String(), test.says) || test.says == "" && stderr.Len() > 0 ||
			!strings.Contains(stdout.String(), test.shows) {
			t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
		}
	}
}
