package daemons

import (
	"fmt"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/startd/shell"
)

func shellAgentCommand() *frame.Command {
	return &frame.Command{
		Name: shell.AgentCommand, Group: frame.GroupMore, Summary: "enter a running task", MaxOperands: 1, Hidden: true,
		Run:         runShellAgent,
		Description: "An execute node starts this to run a command inside a task. It is of no use to people.",
	}
}

func runShellAgent(c *frame.Invocation) error {
	err := shell.Agent(c.Args)
	fmt.Fprintf(c.Stderr, "roost: %v\n", err)
	return frame.ExitError(shell.ExitCode(err))
}
