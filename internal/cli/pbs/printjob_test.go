package pbs

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPrintScript holds that printjob -s prints the script and nothing else. A script
// that the schedd stores by itself is not taken for its first line.
func TestPrintScript(t *testing.T) {
	f := &clitest.FakeSchedd{Jobs: []*wire.JobStatus{
		{Id: "1.pool", Owner: "ann", State: "idle", Ad: `[Script = "echo a\necho b"]`},
		{Id: "2.pool", Owner: "ann", State: "idle", Ad: `[Script = "#!/bin/sh\n"; ScriptFile = "abc"]`},
	}}
	dir := f.Serve(t)
	for id, want := range map[string]string{"1": "echo a\necho b", "2": ""} {
		a, stdout, stderr := newPBSApp(t, dir)
		code := a.Run(t.Context(), []string{"printjob", "-s", id})
		if stdout.String() != want || (code == 0) != (want != "") ||
			want == "" && !strings.Contains(stderr.String(), "not handed out") {
			t.Errorf("%s: exit status %d, %q, %q", id, code, stdout, stderr)
		}
	}
}
