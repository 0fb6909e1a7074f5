package cli

import (
	"context"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
)

// The masters start the daemons of a node as "roost ROLE --config FILE [--name NAME]".

// daemonCommands are the daemons, which a master starts and people seldom do.
func daemonCommands() []*command {
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
	var list []*command
	for _, r := range roles {
		list = append(list, &command{
			name: r.name, group: groupMore, brief: r.brief, most: 0, hidden: true,
			about: "A daemon of Roost. The master of the node starts it; see roost-master(8).",
			flags: []ucli.Flag{configFlag(), &ucli.StringFlag{Name: "name", Usage: "the `NAME` of the execute node, where the file has several"}},
			do:    serve(r.run),
		})
	}
	return append(list, filesAgentCommand(), filesTreeCommand(), shellAgentCommand(), checkpointAgentCommand(), inputAgentCommand())
}

func configFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)", Value: "/etc/roost/node.hcl"}
}

// serve returns what a daemon's command does: run until a signal comes.
func serve(run func(ctx context.Context, n *config.Node, name string) error) func(*call) error {
	return func(c *call) error {
		ctx, cancel := daemon.Context()
		defer cancel()
		n, err := config.Load(c.text("config"))
		if err != nil {
			return err
		}
		daemon.GiveBack(ctx)
		defer daemon.Profile(c.cmd.name)()
		return run(ctx, n, c.text("name"))
	}
}
