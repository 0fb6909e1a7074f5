package jobs

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
)

// newJobsApp returns a program with commands about jobs that talks to the pool in dir.
func newJobsApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{ListCommand(), TopCommand(), WaitCommand(nil),
		CheckpointCommand(), SuspendCommand(), ResumeCommand(nil),
		RemoveCommand()}))
}

func singleJob(state string, exit *wire.ExitStatus) *wire.JobStatus {
	return &wire.JobStatus{Id: "70.pool", Name: "hello", Owner: "ann", Tasks: 1, State: state,
		Counts: clitest.TaskCounts(state, 1), Exit: exit}
}
