package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestHints holds where advice about requests appears, and that output for programs stays
// as it is.
func TestHints(t *testing.T) {
	end := &wire.ExitStatus{Wall: 600e9, UserCpu: 500e9, Usage: &wire.TaskUsage{PeakMemory: 612 << 20}}
	asked := &wire.Resources{MilliCpu: 1000, Memory: 8 << 30}
	one := &wire.JobStatus{Id: "70.pool", Name: "one", Owner: "ann", State: "completed", Tasks: 1,
		Counts: clitest.TaskCounts("completed", 1), Request: asked, Exit: end,
		Started: clitest.TimeBefore(time.Hour), Ended: clitest.TimeBefore(time.Minute), Ad: "[Walltime = 36000]"}
	many := &wire.JobStatus{Id: "71.pool", Name: "many", Owner: "ann", Tasks: 3, Array: true,
		Counts: clitest.TaskCounts("completed", 2, "running", 1), Request: asked,
		Started: clitest.TimeBefore(time.Hour)}
	task := func(id string, state string, e *wire.ExitStatus) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Owner: "ann", State: state, Tasks: 1, Request: asked, Exit: e}
	}
	f := &clitest.FakeSchedd{Jobs: []*wire.JobStatus{one, many}, Tasks: []*wire.JobStatus{
		task("71[0].pool", "completed", end), task("71[1].pool", "completed", &wire.ExitStatus{Code: 1,
			Usage: &wire.TaskUsage{PeakMemory: 7 << 30}}), task("71[2].pool", "running", nil),
	}}
	f.WatchFunc = func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
		return to.Send(&wire.WatchEvent{Status: one})
	}
	dir := f.Serve(t)
	const memory, walltime = `used at most 612MiB in 1 task: memory = "960MiB" would do`,
		`asked for a walltime of 10h, took at most 10m in 1 task: walltime = "20m" would do`
	for _, tt := range []struct {
		line     string
		terminal bool
		out, err []string
	}{
		{"roost show 70", false, []string{"hint        asked for 8GiB, " + memory, walltime}, nil},
		{"roost show 71", false, []string{"hint        asked for 8GiB, " + memory}, nil},
		{"roost show --json 70", false, []string{`"hints": [`, "used at most 612MiB"}, nil},
		{"qstat -fwx 70", false, []string{"and finished; asked for 8GiB, " + memory + "; " + walltime}, nil},
		{"roost wait 70", true, nil, []string{"hint: asked for 8GiB, " + memory}},
		{"roost wait 70", false, nil, nil},
		{"roost wait -q 70", true, nil, nil},
	} {
		a, stdout, stderr := newFullApp(t, dir)
		a.ErrScreen.Terminal, a.ErrScreen.Width = tt.terminal, 80
		if code := a.Run(t.Context(), strings.Fields(tt.line)); code != 0 {
			t.Errorf("%s: exit status %d\n%s", tt.line, code, stderr)
		}
		for _, want := range tt.out {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", tt.line, want, stdout)
			}
		}
		for _, want := range tt.err {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", tt.line, want, stderr)
			}
		}
		if got := stdout.String() + stderr.String(); len(tt.out)+len(tt.err) == 0 &&
			strings.Contains(got, "asked for") {
			t.Errorf("%s: nobody asked for a hint\n%s", tt.line, got)
		}
	}
}
