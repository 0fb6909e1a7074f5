package node

import (
	"fmt"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/negotiator"
)

// RecoverCell makes a new cell of this node's negotiator alone, for roost cell recover.
func RecoverCell(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	if !c.Flag("force") {
		return frame.UsageErrorf("recover makes %s alone a new cell. The other central managers must never be started "+
			"again with what they have on disk: they would be a "+
			"second cell that grants the same machines. Stop the negotiator here, make sure of the others, and say "+
			"--force", n.Name)
	}
	if err := negotiator.Recover(n, daemon.Logger("negotiator")); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "%s is a cell of its own. Start it; then, for each of the others, remove its directory "+
		"negotiator/replica, start it, and say: roost cell add ADDRESS\n", n.Name)
	return nil
}
