package jobs

import (
	"math"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestCheckpointIsAwaited holds that the first answer after the request counts, whatever
// the log had before.
func TestCheckpointIsAwaited(t *testing.T) {
	for _, c := range []struct {
		what, text, args string
		want             string
		code             int
	}{
		{"checkpointed", "checkpoint 2 of attempt 1: 12 MiB, stood still for 210ms", "62",
			"62.pool.example.org: checkpoint 2 of attempt 1: 12 MiB, stood still for 210ms\n", 0},
		{"checkpoint-failed", "a socket is open", "62", "62.pool.example.org: no checkpoint: a socket is open\n", 1},
		{"completed", "exit code 0", "62", "62.pool.example.org: no checkpoint: it ended before: exit code 0\n", 1},
		{"checkpointed", "", "--no-wait 62", "62.pool.example.org: 1 task to be checkpointed\n", 0},
		{"checkpointed", "", "999", "", 68},
	} {
		f := clitest.SampleJobs()
		answer := &wire.JobEvent{Time: math.MaxInt64, Id: "62.pool.example.org", Attempt: 1, What: c.what, Text: c.text}
		if c.what == "completed" {
			answer.Exit = &wire.ExitStatus{}
		}
		f.JobEvents = []*wire.JobEvent{{Time: 1, Id: "62.pool.example.org", Attempt: 1, What: "checkpointed",
			Text: "before"}, answer}
		a, stdout, stderr := newJobsApp(t, f.Serve(t))
		code := a.Run(t.Context(), append([]string{"roost", "checkpoint"}, strings.Fields(c.args)...))
		if code != c.code || stdout.String() != c.want {
			t.Errorf("%s %s: got %d %q (%s), want %d %q", c.what, c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
