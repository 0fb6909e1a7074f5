package cli

import (
	"bytes"
	"testing"
)

// newSimApp returns a program with roost sim and roost cell that talks to the pool in dir.
func newSimApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags([]*command{simCommand(), cellCommand()}))
}
