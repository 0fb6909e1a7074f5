package cli

import (
	"fmt"

	"github.com/roost-batch/roost/startd/shell"
)

func shellAgentCommand() *command {
	return &command{
		name: shell.AgentCommand, group: groupMore, summary: "enter a running task", maxOperands: 1, hidden: true,
		run:         runShellAgent,
		description: "An execute node starts this to run a command inside a task. It is of no use to people.",
	}
}

func runShellAgent(c *invocation) error {
	err := shell.Agent(c.args)
	fmt.Fprintf(c.stderr, "roost: %v\n", err)
	return exitError(shell.ExitCode(err))
}
