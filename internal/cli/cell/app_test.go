package cell

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/node"
)

// newPoolApp returns a program with roost cell and roost limit that talks to the pool in
// dir.
func newPoolApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{
		CellCommand(node.RecoverCell), admin.LimitCommand(),
	}))
}
