package owner

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// ownerCommands are the commands of a machine's owner.
func ownerCommands() []*frame.Command {
	return frame.WithCommonFlags([]*frame.Command{PauseCommand(), MineCommand(), SessionAgentCommand()})
}

// newOwnerApp returns a program with them that talks to the guard in dir.
func newOwnerApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, ownerCommands())
}
