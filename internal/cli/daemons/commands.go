package daemons

import (
	"context"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
)

// The masters start the daemons of a node as "roost ROLE --config FILE [--name NAME]".

// Commands are the daemons and agents, which masters and daemons start and people seldom
// do.
func Commands() []*frame.Command {
	roles := []struct {
		name, brief string
		run         func(ctx context.Context, n *config.Node, name string) error
	}{
		{"collector", "run the collector of a node", runCollector},
		{"negotiator", "run the negotiator of a node", runNegotiator},
		{"schedd", "run the schedd of a node", runSchedd},
		{"startd", "run an execute node", runStartd},
		{"guard", "stand between a machine's owner and its tasks", runGuard},
		{"authority", "run the certificate authority of a pool", runAuthority},
		{"checkpoint-server", "run the checkpoint server of a node", runCheckpointServer},
	}
	var list []*frame.Command
	for _, r := range roles {
		list = append(list, &frame.Command{
			Name: r.name, Group: frame.GroupMore, Summary: r.brief, MaxOperands: 0, Hidden: true,
			Description: "A daemon of Roost. The master of the node starts it; see roost-master(8).",
			Flags: []ucli.Flag{frame.ConfigFlag(),
				&ucli.StringFlag{Name: "name", Usage: "the `NAME` of the execute node, where the file has several"}},
			Run: serveDaemon(r.run),
		})
	}
	return append(list, filesAgentCommand(), filesTreeCommand(), shellAgentCommand(), checkpointAgentCommand(),
		inputAgentCommand())
}

// serveDaemon returns what a daemon's command does: run until a signal comes.
func serveDaemon(run func(ctx context.Context, n *config.Node, name string) error) func(*frame.Invocation) error {
	return func(c *frame.Invocation) error {
		ctx, cancel := daemon.SignalContext()
		defer cancel()
		n, err := config.Load(c.StringFlag("config"))
		if err != nil {
			return err
		}
		daemon.TrimHeap(ctx)
		defer daemon.StartProfile(c.Command.Name)()
		return run(ctx, n, c.StringFlag("name"))
	}
}
