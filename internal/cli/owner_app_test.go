package cli

import (
	"bytes"
	"testing"
)

// ownerCommands are the commands of a machine's owner.
func ownerCommands() []*command {
	return withCommonFlags([]*command{pauseCommand(), mineCommand(), sessionAgentCommand()})
}

// newOwnerApp returns a program with them that talks to the guard in dir.
func newOwnerApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, ownerCommands())
}
