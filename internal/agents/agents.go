// Package agents runs the agents that daemons start from their own program. An agent has
// the rights of one user, or lives beside one task, and speaks with its daemon over its
// standard streams or a socket.
package agents

import (
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/desktop/idle"
	"github.com/roost-batch/roost/startd/shell"
)

// daemonSocket is the descriptor on which an agent speaks with its daemon.
const daemonSocket = 3

// errNoDaemon is the error of an agent that a person starts.
var errNoDaemon = fmt.Errorf("%w: a daemon starts this, and passes it a socket", roost.Usage)

// Agent is one of the agents.
type Agent struct {
	Name    string // the first argument of the program
	Summary string
	Run     func(args []string) error
	// ExitCode is the exit status for an error of Run; nil: that of the error's kind
	ExitCode func(error) int
}

// All returns the agents.
func All() []Agent {
	return []Agent{
		{Name: userfiles.AgentCommand, Summary: "move files with a user's rights", Run: runFilesAgent},
		{Name: userfiles.TreeCommand, Summary: "pack or unpack a directory with a user's rights", Run: runFilesTree},
		{Name: shell.AgentCommand, Summary: "enter a running task", Run: shell.Agent, ExitCode: shell.ExitCode},
		{Name: criu.AgentName, Summary: "dump or restore a task", Run: runCheckpointAgent},
		{Name: idle.AgentCommand, Summary: "say when somebody touches the machine", Run: runInputAgent},
	}
}

// RunByName runs the agent of that name and returns its exit status. Known is false if
// there is none. printError prints an error and returns the exit status of its kind.
func RunByName(name string, args []string, printError func(name string, err error) int) (code int, known bool) {
	i := slices.IndexFunc(All(), func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return 0, false
	}
	a := All()[i]
	err := a.Run(args)
	if err == nil || a.ExitCode == nil {
		return printError(a.Name, err), true
	}
	fmt.Fprintf(os.Stderr, "roost: %v\n", err)
	return a.ExitCode(err), true
}

func runCheckpointAgent([]string) error {
	return criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe")
}

func runFilesTree(args []string) error {
	report := os.NewFile(daemonSocket, "report")
	if report == nil {
		return errNoDaemon
	}
	defer report.Close()
	return userfiles.ServeTree(args, os.Stdin, os.Stdout, report)
}

func runFilesAgent([]string) error {
	f := os.NewFile(daemonSocket, "agent")
	if f == nil {
		return errNoDaemon
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoDaemon, err)
	}
	defer conn.Close()
	return userfiles.ServeAgent(conn)
}

func runInputAgent([]string) error {
	f := os.NewFile(daemonSocket, "agent")
	if f == nil {
		return errNoDaemon
	}
	if err := idle.RunInputAgent(f); err != nil {
		return fmt.Errorf("%w: %w", errNoDaemon, err)
	}
	return nil
}
