package cli

import (
	"bytes"
	"testing"
)

// newDoctorApp returns a program with roost doctor that talks to the pool in dir.
func newDoctorApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	return newTestApp(t, dir, withCommonFlags([]*command{doctorCommand()}))
}
