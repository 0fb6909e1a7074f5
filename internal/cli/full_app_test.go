package cli

import (
	"bytes"
	"testing"
)

// newFullApp returns a program with all commands that talks to the pool in dir.
func newFullApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, commands())
}
