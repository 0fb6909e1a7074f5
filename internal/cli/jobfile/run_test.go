package jobfile

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

func singleJob(state string, exit *wire.ExitStatus) *wire.JobStatus {
	return &wire.JobStatus{Id: "70.pool", Name: "hello", Owner: "ann", Tasks: 1, State: state,
		Counts: clitest.TaskCounts(state, 1), Exit: exit}
}

// TestRun holds the exit status and the streams of roost run.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		exit *wire.ExitStatus
		code int
		err  string
	}{
		{&wire.ExitStatus{}, 0, "to stderr\n"},
		{&wire.ExitStatus{Code: 7}, 7, "to stderr\n"},
		{&wire.ExitStatus{Signal: 9}, 137, "to stderr\nroost: 70.pool: killed by SIGKILL\n"},
		{&wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH, Reason: "exec: no such file"}, 127,
			"to stderr\nroost: 70.pool: exec: no such file\n"},
	} {
		f := &clitest.FakeSchedd{
			WatchFunc: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
				to.Send(&wire.WatchEvent{Status: singleJob("idle", nil)})
				return to.Send(&wire.WatchEvent{Status: singleJob("completed", test.exit)})
			},
			LogsFunc: func(req *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error {
				text := "to stdout\n"
				if req.GetStderr() {
					text = "to stderr\n"
				}
				return to.Send(&wire.LogChunk{Data: []byte(text), Attempt: 1})
			},
		}
		a, stdout, stderr := newJobsApp(t, f.Serve(t))
		code := a.Run(t.Context(), []string{"roost", "run", "--", "/bin/echo", "--flag"})
		if code != test.code || stdout.String() != "to stdout\n" || stderr.String() != test.err {
			t.Errorf("%v: exit status %d, stdout %q, stderr %q", test.exit, code, stdout, stderr)
		}
	}
}

// TestRunInterrupted holds that the first interrupt removes the job and the second
// leaves.
func TestRunInterrupted(t *testing.T) {
	for _, twice := range []bool{false, true} {
		gone := make(chan struct{})
		f := &clitest.FakeSchedd{Removed: gone, Jobs: []*wire.JobStatus{singleJob("running", nil)}}
		f.WatchFunc = func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
			if twice {
				<-to.Context().Done()
				return to.Context().Err()
			}
			<-gone
			return to.Send(&wire.WatchEvent{Status: singleJob("removed", nil)})
		}
		f.LogsFunc = func(_ *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error { return nil }
		a, _, stderr := newJobsApp(t, f.Serve(t))
		a.Interrupts <- os.Interrupt
		if twice {
			a.Interrupts <- os.Interrupt
		}
		if code := a.Run(t.Context(), []string{"roost", "run", "--", "/bin/sleep", "1000"}); code != 130 {
			t.Errorf("twice %v: exit status %d, %s", twice, code, stderr)
		}
		if !strings.Contains(stderr.String(), "removing 70.pool") ||
			twice != strings.Contains(stderr.String(), "left") {
			t.Errorf("twice %v: it says %q", twice, stderr)
		}
	}
}
