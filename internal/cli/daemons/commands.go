package daemons

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/agents"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
)

// The masters start the daemons of a node as "roost-daemon ROLE --config FILE [--name
// NAME]".

// Commands are the daemons and agents, which masters and daemons start and people seldom
// do.
func Commands() []*frame.Command {
	roles := []struct{ name, brief string }{
		{"collector", "run the collector of a node"},
		{"negotiator", "run the negotiator of a node"},
		{"schedd", "run the schedd of a node"},
		{"startd", "run an execute node"},
		{"guard", "stand between a machine's owner and its tasks"},
		{"authority", "run the certificate authority of a pool"},
		{"checkpoint-server", "run the checkpoint server of a node"},
		{"accountant", "run the accountant of a pool"},
	}
	var list []*frame.Command
	for _, r := range roles {
		list = append(list, &frame.Command{
			Name: r.name, Group: frame.GroupMore, Summary: r.brief, MaxOperands: 0, Hidden: true,
			Description: "A daemon of Roost. The master of the node starts it; see roost-master(8).",
			Flags: []ucli.Flag{nodeaccess.ConfigFlag(),
				&ucli.StringFlag{Name: "name", Usage: "the `NAME` of the execute node, where the file has several"}},
			Run: execDaemon,
		})
	}
	for _, a := range agents.All() {
		list = append(list, agentCommand(a))
	}
	return list
}

// execDaemon runs a daemon in the place of this process.
func execDaemon(c *frame.Invocation) error {
	return c.ExecDaemon(c.Command.Name, "--config", c.StringFlag("config"), "--name", c.StringFlag("name"))
}

// agentCommand is an agent that roost doctor starts to try checkpoints.
func agentCommand(a agents.Agent) *frame.Command {
	return &frame.Command{
		Name: a.Name, Group: frame.GroupMore, Summary: a.Summary, RawArgs: true, MaxOperands: -1, Hidden: true,
		Description: "A daemon starts this. It is of no use to people.",
		Run: func(c *frame.Invocation) error {
			err := a.Run(c.Args)
			if err == nil || a.ExitCode == nil {
				return err
			}
			fmt.Fprintf(c.Stderr, "roost: %v\n", err)
			return frame.ExitError(a.ExitCode(err))
		},
	}
}
