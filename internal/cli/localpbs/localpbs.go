// Package localpbs is the program roost-q: the PBS commands that scripts call often, for
// a user of this machine's schedd. Everything else it hands to roost, which has all
// commands, speaks gRPC over TLS and reads job files. These libraries take most of the
// time in which a command starts.
package localpbs

import (
	"context"
	"io"
	"slices"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs"
	"github.com/roost-batch/roost/internal/cli/slurm/reports"
	"github.com/roost-batch/roost/internal/cli/slurm/steps"
	"github.com/roost-batch/roost/internal/cli/slurm/submission"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// New returns the program with those streams and that environment ("NAME=value").
func New(stdin io.Reader, stdout, stderr io.Writer, env []string) *frame.App {
	a := frame.NewApp(stdin, stdout, stderr, env, func() []*frame.Command { return nil })
	a.Find, a.Dialer, a.FallbackProgram = findCommand, localDialer{}, frame.MainProgram
	return a
}

// Run does what args ask for and returns the exit status. args[0] is the name that the
// program was called by.
func Run(ctx context.Context, a *frame.App, args []string) int {
	if len(args) == 0 {
		args = []string{frame.LocalProgram}
	}
	return a.Run(ctx, args)
}

// findCommand makes the command of a link's name. Other names are roost's, with all of
// their command line.
func findCommand(name string) *frame.Command {
	if name == "srun" { // in a job it needs no schedd
		return steps.SrunCommand(func(c *frame.Invocation, _ []getopt.Given, _ []string) error {
			return c.ExecSibling(frame.MainProgram)
		})
	}
	entries := slices.Concat(pbs.LocalEntries(), submission.Entries(), reports.Entries())
	c := frame.FindEntry(entries, name)
	if c == nil {
		c = frame.FindEntry(entries, frame.SlurmPrefix+name)
	}
	if c == nil || name == "sattach" { // that reaches the task by a stream
		return &frame.Command{Name: name, Group: frame.GroupPBS, RawArgs: true, Program: frame.MainProgram}
	}
	c.Prepare = preparation(c.Prepare)
	return frame.WithCommonFlags([]*frame.Command{c})[0]
}

// preparation hands a command to roost unless it can only mean this machine's schedd.
// That one is there then, and the user has no logins elsewhere. The command has neither
// read nor written anything before, so it can begin again.
func preparation(then func(*frame.Invocation) error) func(*frame.Invocation) error {
	return func(c *frame.Invocation) error {
		if _, err := c.FindSocket(); err != nil || hasLogins(c) {
			return c.ExecSibling(frame.MainProgram)
		}
		if then == nil {
			return nil
		}
		return then(c)
	}
}

func hasLogins(c *frame.Invocation) bool {
	dir, err := loginfile.Dir(c.Getenv)
	return err == nil && len(loginfile.Nodes(dir)) > 0
}

// localDialer is a frame.SocketDialer that continues in roost where the schedd does not
// answer. That can ask the negotiators with the node's key.
type localDialer struct{ frame.SocketDialer }

// AskNegotiators continues the command in roost.
func (localDialer) AskNegotiators(c *frame.Invocation, _ *scheddapi.CellRequest) (*scheddapi.CellReply, error) {
	return nil, c.ExecSibling(frame.MainProgram)
}
