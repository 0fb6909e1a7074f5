package cli

import (
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

func inputAgentCommand() *command {
	return &command{
		name: idle.AgentCommand, group: groupMore, summary: "say when somebody touches the machine", maxOperands: 0,
		hidden: true, run: runInputAgent,
		description: "The guard starts this, without any rights, to read keyboards and mice for it: it passes " +
			"on times and nothing else. It is of no use to people.",
	}
}

func runInputAgent(*invocation) error {
	f := os.NewFile(agentSocket, "agent")
	if f == nil {
		return kindErrorf(roost.Usage, "a daemon starts this, and hands it a socket")
	}
	if err := idle.RunInputAgent(f); err != nil {
		return kindErrorf(roost.Usage, "a daemon starts this, and hands it a socket: %v", err)
	}
	return nil
}
