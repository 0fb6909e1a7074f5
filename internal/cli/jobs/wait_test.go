package jobs

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestWait holds the exit status of roost wait, and that it goes on when the schedd was
// away.
func TestWait(t *testing.T) {
	array := func(done, failed int) *wire.JobStatus {
		return &wire.JobStatus{Id: "71.pool", Name: "sweep", Tasks: 4, Array: true,
			Counts: clitest.TaskCounts("completed", done, "failed", failed, "running", 4-done)}
	}
	for _, test := range []struct {
		name   string
		events []*wire.WatchEvent
		code   int
	}{
		{"single", []*wire.WatchEvent{{Status: singleJob("running", nil)},
			{Status: singleJob("completed", &wire.ExitStatus{Code: 9})}}, 9},
		{"array", []*wire.WatchEvent{{Status: array(1, 0)}, {Status: array(4, 0)}}, 0},
		{"failed", []*wire.WatchEvent{{Status: array(1, 0)},
			{Status: array(4, 2), Failed: []*wire.JobStatus{{Id: "71[2].pool", State: "completed",
				Exit: &wire.ExitStatus{Code: 2}, Node: "n1"}}}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			f := &clitest.FakeSchedd{WatchFunc: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
				calls++
				if calls == 1 {
					to.Send(test.events[0])
					return context.DeadlineExceeded // the schedd went away
				}
				for _, e := range test.events {
					to.Send(e)
				}
				return nil
			}}
			a, stdout, stderr := newJobsApp(t, f.Serve(t))
			if code := a.Run(t.Context(), []string{"roost", "wait", "last"}); code != test.code {
				t.Errorf("exit status %d, want %d", code, test.code)
			}
			clitest.CompareGolden(t, "wait-"+test.name, stdout.String()+stderr.String())
		})
	}
}

// TestWaitTimeout holds the status of a wait that takes too long.
func TestWaitTimeout(t *testing.T) {
	f := &clitest.FakeSchedd{WatchFunc: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
		to.Send(&wire.WatchEvent{Status: singleJob("running", nil)})
		<-to.Context().Done()
		return to.Context().Err()
	}}
	a, _, stderr := newJobsApp(t, f.Serve(t))
	if code := a.Run(t.Context(), []string{"roost", "wait", "--timeout", "200ms", "70"}); code != exitTimedOut {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
