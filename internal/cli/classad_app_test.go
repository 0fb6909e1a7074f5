package cli

import (
	"bytes"
	"testing"
)

// newClassadApp returns a program with roost classad that talks to the pool in dir.
func newClassadApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags([]*command{classadCommand()}))
}
