package cli

import (
	"bytes"
	"testing"
)

// newPBSApp returns a program with the PBS commands that talks to the pool in dir.
func newPBSApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags(pbsCommands()))
}
