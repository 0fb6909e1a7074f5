package cli

import (
	"net"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/userfiles"
)

func checkpointAgentCommand() *command {
	return &command{
		name: criu.AgentName, group: groupMore, summary: "dump or restore a task", maxOperands: 0, hidden: true,
		run: runCheckpointAgent,
		description: "The startd and the starter start this for one checkpoint, with a spec on its standard input. " +
			"It is of no use to people.",
	}
}

func runCheckpointAgent(*invocation) error {
	return criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe")
}

// agentSocket is the descriptor on which a files agent is spoken to.
const agentSocket = 3

func filesAgentCommand() *command {
	return &command{
		name: userfiles.AgentCommand, group: groupMore, summary: "move files with a user's rights", maxOperands: 0,
		hidden: true, run: runFilesAgent,
		description: "Daemons that run as root start this as the user whose files are to be moved. It is of no " +
			"use to people.",
	}
}

func filesTreeCommand() *command {
	return &command{
		name: userfiles.TreeCommand, group: groupMore, summary: "pack or unpack a directory with a user's rights",
		maxOperands: 3, hidden: true, run: runFilesTree,
		description: "Daemons that run as root start this as the user whose directory goes into a checkpoint. It is " +
			"of no use to people.",
	}
}

func runFilesTree(c *invocation) error {
	report := os.NewFile(agentSocket, "report")
	if report == nil {
		return kindErrorf(roost.Usage, "a daemon starts this, and hands it a pipe")
	}
	defer report.Close()
	return userfiles.ServeTree(c.args, os.Stdin, os.Stdout, report)
}

func runFilesAgent(*invocation) error {
	f := os.NewFile(agentSocket, "agent")
	if f == nil {
		return kindErrorf(roost.Usage, "a daemon starts this, and hands it a socket")
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return kindErrorf(roost.Usage, "a daemon starts this, and hands it a socket: %v", err)
	}
	defer conn.Close()
	return userfiles.ServeAgent(conn)
}
