package node

import (
	"fmt"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/schedd/cellqueue"
)

// RecoverCell makes a new cell of this node's negotiator alone, for roost cell recover.
// With --queue it does so with the member of the cell's queue.
func RecoverCell(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	recovery, what, danger, dir, add := negotiator.Recover, "negotiator", "grants the same machines",
		"negotiator/replica", "roost cell add ADDRESS"
	if c.Flag("queue") {
		recovery, what, danger, dir, add = cellqueue.Recover, "member of the cell's queue", "runs the same jobs",
			"cell-queue", "roost cell add ADDRESS --queue"
	}
	if !c.Flag("force") {
		return frame.UsageErrorf("recover makes %s alone a new cell. The other central managers must never be started "+
			"again with what they have on disk: they would be a "+
			"second cell that %s. Stop the %s here, make sure of the others, and say --force", n.Name, danger, what)
	}
	if err := recovery(n, daemon.Logger(what)); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "%s is a cell of its own. Start it; then, for each of the others, remove its directory "+
		"%s, start it, and say: %s\n", n.Name, dir, add)
	return nil
}
