package daemons

import (
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/negotiator"
)

// runNegotiator runs the negotiator until a signal comes. The other daemons are in
// roost-daemon, without the library of the replicated log.
func runNegotiator(c *frame.Invocation) error {
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	n, err := config.Load(c.StringFlag("config"))
	if err != nil {
		return err
	}
	daemon.TrimHeap(ctx)
	defer daemon.StartProfile(c.Command.Name)()
	id, err := frame.LoadIdentity(n)
	if err != nil {
		return err
	}
	return negotiator.Run(ctx, n, id)
}
