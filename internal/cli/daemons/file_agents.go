package daemons

import (
	"net"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/userfiles"
)

func checkpointAgentCommand() *frame.Command {
	return &frame.Command{
		Name: criu.AgentName, Group: frame.GroupMore, Summary: "dump or restore a task", MaxOperands: 0, Hidden: true,
		Run: runCheckpointAgent,
		Description: "The startd and the starter start this for one checkpoint, with a spec on its standard input. " +
			"It is of no use to people.",
	}
}

func runCheckpointAgent(*frame.Invocation) error {
	return criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe")
}

// agentSocket is the descriptor on which a files agent is spoken to.
const agentSocket = 3

func filesAgentCommand() *frame.Command {
	return &frame.Command{
		Name: userfiles.AgentCommand, Group: frame.GroupMore, Summary: "move files with a user's rights",
		MaxOperands: 0,
		Hidden:      true, Run: runFilesAgent,
		Description: "Daemons that run as root start this as the user whose files are to be moved. It is of no " +
			"use to people.",
	}
}

func filesTreeCommand() *frame.Command {
	return &frame.Command{
		Name: userfiles.TreeCommand, Group: frame.GroupMore, Summary: "pack or unpack a directory with a user's rights",
		MaxOperands: 3, Hidden: true, Run: runFilesTree,
		Description: "Daemons that run as root start this as the user whose directory goes into a checkpoint. It is " +
			"of no use to people.",
	}
}

func runFilesTree(c *frame.Invocation) error {
	report := os.NewFile(agentSocket, "report")
	if report == nil {
		return frame.KindErrorf(roost.Usage, "a daemon starts this, and hands it a pipe")
	}
	defer report.Close()
	return userfiles.ServeTree(c.Args, os.Stdin, os.Stdout, report)
}

func runFilesAgent(*frame.Invocation) error {
	f := os.NewFile(agentSocket, "agent")
	if f == nil {
		return frame.KindErrorf(roost.Usage, "a daemon starts this, and hands it a socket")
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return frame.KindErrorf(roost.Usage, "a daemon starts this, and hands it a socket: %v", err)
	}
	defer conn.Close()
	return userfiles.ServeAgent(conn)
}
