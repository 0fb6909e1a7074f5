package daemons

import (
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

func inputAgentCommand() *frame.Command {
	return &frame.Command{
		Name: idle.AgentCommand, Group: frame.GroupMore, Summary: "say when somebody touches the machine",
		MaxOperands: 0,
		Hidden:      true, Run: runInputAgent,
		Description: "The guard starts this, without any rights, to read keyboards and mice for it: it passes " +
			"on times and nothing else. It is of no use to people.",
	}
}

func runInputAgent(*frame.Invocation) error {
	f := os.NewFile(agentSocket, "agent")
	if f == nil {
		return frame.KindErrorf(roost.Usage, "a daemon starts this, and hands it a socket")
	}
	if err := idle.RunInputAgent(f); err != nil {
		return frame.KindErrorf(roost.Usage, "a daemon starts this, and hands it a socket: %v", err)
	}
	return nil
}
