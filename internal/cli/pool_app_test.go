package cli

import (
	"bytes"
	"testing"
)

// newPoolApp returns a program with roost cell and roost limit that talks to the pool in dir.
func newPoolApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags([]*command{cellCommand(), limitCommand()}))
}
