package sim

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newSimApp returns a program with roost sim and roost cell that talks to the pool in
// dir.
func newSimApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{Command(), cell.CellCommand(nil)}))
}
