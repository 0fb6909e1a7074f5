package jobfile

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newJobsApp returns a program with commands about jobs that talks to the pool in dir.
func newJobsApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{SubmitCommand(), RunCommand()}))
}
