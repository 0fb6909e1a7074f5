package pbs

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newPBSApp returns a program with the PBS commands that talks to the pool in dir.
func newPBSApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags(frame.MakeCommands(Entries())))
}
