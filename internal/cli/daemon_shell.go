package cli

import (
	"fmt"

	"github.com/roost-batch/roost/startd/shell"
)

func shellAgentCommand() *command {
	return &command{
		name: shell.AgentCommand, group: groupMore, brief: "enter a running task", most: 1, hidden: true, do: runShellAgent,
		about: "An execute node starts this to run a command inside a task. It is of no use to people.",
	}
}

func runShellAgent(c *call) error {
	err := shell.Agent(c.args)
	fmt.Fprintf(c.stderr, "roost: %v\n", err)
	return exit(shell.ExitCode(err))
}
