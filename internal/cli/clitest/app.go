package clitest

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
)

// NewApp returns a program with those commands that talks to the pool in dir and
// writes into buffers. Its clock is at Noon.
func NewApp(t *testing.T, dir string, commands []*frame.Command) (a *frame.App, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	a = frame.NewApp(strings.NewReader(""), stdout, stderr,
		[]string{"ROOST_DIR=" + dir, "HOME=/home/ann", "PATH=/usr/bin:/bin", "TZ=UTC"},
		func() []*frame.Command { return commands })
	a.Dialer = nodeaccess.Dialer{}
	a.Dir, a.Now = t.TempDir(), func() time.Time { return Noon }
	a.Interrupts = make(chan os.Signal, 4)
	return a, stdout, stderr
}
