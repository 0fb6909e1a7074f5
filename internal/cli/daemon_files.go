package cli

import (
	"net"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/files"
)

func checkpointAgentCommand() *command {
	return &command{
		name: criu.AgentName, group: groupMore, brief: "dump or restore a task", most: 0, hidden: true, do: runCheckpointAgent,
		about: "The startd and the starter start this for one checkpoint, with a spec on its standard input. It is of no use to people.",
	}
}

func runCheckpointAgent(*call) error {
	return criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe")
}

// agentSocket is the descriptor on which a files agent is spoken to.
const agentSocket = 3

func filesAgentCommand() *command {
	return &command{
		name: files.AgentCommand, group: groupMore, brief: "move files with a user's rights", most: 0, hidden: true, do: runFilesAgent,
		about: "Daemons that run as root start this as the user whose files are to be moved. It is of no use to people.",
	}
}

func filesTreeCommand() *command {
	return &command{
		name: files.TreeCommand, group: groupMore, brief: "pack or unpack a directory with a user's rights", most: 3, hidden: true, do: runFilesTree,
		about: "Daemons that run as root start this as the user whose directory goes into a checkpoint. It is of no use to people.",
	}
}

func runFilesTree(c *call) error {
	report := os.NewFile(agentSocket, "report")
	if report == nil {
		return problem(roost.Usage, "a daemon starts this, and hands it a pipe")
	}
	defer report.Close()
	return files.ServeTree(c.args, os.Stdin, os.Stdout, report)
}

func runFilesAgent(*call) error {
	f := os.NewFile(agentSocket, "agent")
	if f == nil {
		return problem(roost.Usage, "a daemon starts this, and hands it a socket")
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return problem(roost.Usage, "a daemon starts this, and hands it a socket: %v", err)
	}
	defer conn.Close()
	return files.ServeAgent(conn)
}
