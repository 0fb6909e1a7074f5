package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// newTestApp returns a program with those commands that talks to the pool in dir and
// writes into buffers. Its clock is at testNoon.
func newTestApp(t *testing.T, dir string, commands []*command) (a *App, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	a = newApp(strings.NewReader(""), stdout, stderr,
		[]string{"ROOST_DIR=" + dir, "HOME=/home/ann", "PATH=/usr/bin:/bin", "TZ=UTC"},
		func() []*command { return commands })
	a.dir, a.now = t.TempDir(), func() time.Time { return testNoon }
	a.interrupts = make(chan os.Signal, 4)
	return a, stdout, stderr
}
