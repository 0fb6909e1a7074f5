package reservation

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newReservationApp returns a program with the commands about reservations that talks to
// the pool in dir.
func newReservationApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{SubmitCommand(), AlterCommand(),
		DeleteCommand()}))
}
