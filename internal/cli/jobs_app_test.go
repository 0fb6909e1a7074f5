package cli

import (
	"bytes"
	"testing"
)

// newJobsApp returns a program with commands about jobs that talks to the pool in dir.
func newJobsApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags([]*command{submitCommand(), runCommand(), translateCommand(),
		jobsCommand(), topCommand(), waitCommand(), checkpointCommand(), suspendCommand(), resumeCommand(), rmCommand()}))
}
