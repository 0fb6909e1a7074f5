package cli

import (
	"io"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs"
	"github.com/roost-batch/roost/internal/cli/pool"
	"github.com/roost-batch/roost/internal/cli/terminal"
)

// commands is the table of everything, in the order of the help. The commands in own
// replace those of the same name, which other programs run.
func commands(own []*frame.Command) []*frame.Command {
	all := []*frame.Command{
		jobs.SubmitCommand(), jobs.RunCommand(), jobs.TranslateCommand(),
		jobs.ListCommand(), jobs.ShowCommand(), jobs.WhyCommand(), jobs.LogsCommand(),
		terminal.SSHCommand(), jobs.TopCommand(), jobs.WaitCommand(), jobs.HistoryCommand(),
		admin.SharesCommand(),
		jobs.RemoveCommand(), jobs.HoldCommand(), jobs.ReleaseCommand(), jobs.RetryCommand(),
		jobs.CheckpointCommand(), jobs.SuspendCommand(), jobs.ResumeCommand(execNodeProgram),
		nodeCommand("login", frame.GroupChange, "act on your jobs at another node from this machine"),
		nodeCommand("logins", frame.GroupChange, "list and revoke your logins from other machines"),
		nodeCommand("pause", frame.GroupOwner, "keep the pool off your machine"),
		nodeCommand("mine", frame.GroupOwner, "what the pool does on your machine"),
		nodeCommand("session-agent", frame.GroupOwner, "tell the guard of this machine that you are there"),
		pool.NodesCommand(), pool.AdsCommand(),
		nodeCommand("doctor", frame.GroupPool, "check that the pool and this machine are well"),
		pool.CellCommand(execNodeProgram),
		nodeCommand("up", frame.GroupPool, "run a whole pool on this machine"),
		nodeCommand("master", frame.GroupPool, "run the daemons that a node file names"),
		nodeCommand("pki", frame.GroupPool, "make the certificates by which nodes know each other"),
		nodeCommand("init", frame.GroupPool, "begin a pool on this machine"),
		nodeCommand("token", frame.GroupPool, "let another machine into the pool"),
		nodeCommand("join", frame.GroupPool, "make this machine a member of a pool"),
		nodeCommand("leave", frame.GroupPool, "take this machine out of its pool"),
		nodeCommand("revoke", frame.GroupPool, "put a machine out of the pool"),
		nodeCommand("install", frame.GroupPool, "put programs, manual, completions and units on this machine"),
		admin.QuotaCommand(), admin.GroupCommand(), admin.LimitCommand(), admin.QueueCommand(),
		admin.DrainCommand(), admin.UndrainCommand(), admin.CommentCommand(),
		admin.ReservationCommand(), admin.AdministratorsCommand(),
		{Name: "sim", Group: frame.GroupAdmin, Summary: "try on machines that are not there what a pool would do",
			RawArgs: true, Program: frame.SimulatorProgram},
		classad.Command(), completionCommand(), versionCommand(), wordsCommand(),
	}
	all = append(append(all, pbs.Commands()...), daemonCommands()...)
	for _, c := range own {
		*frame.FindCommand(all, c.Name) = *c
	}
	return frame.WithCommonFlags(all)
}

// nodeCommand is a command that roost-node runs. Its flags and help are there.
func nodeCommand(name, group, summary string) *frame.Command {
	return &frame.Command{Name: name, Group: group, Summary: summary, RawArgs: true, Program: frame.NodeProgram}
}

// daemonCommands are the daemons and agents. Masters and daemons start them from
// roost-node, people seldom as a command of roost.
func daemonCommands() (all []*frame.Command) {
	for _, name := range []string{"collector", "negotiator", "schedd", "startd", "guard", "authority",
		"checkpoint-server", "files-agent", "files-tree", "shell-agent", "checkpoint-agent", "idle-agent"} {
		c := nodeCommand(name, frame.GroupMore, "")
		c.Hidden = true
		all = append(all, c)
	}
	return all
}

func execNodeProgram(c *frame.Invocation) error { return c.ExecSibling(frame.NodeProgram) }

// New returns a program with those streams and that environment ("NAME=value"). It starts
// nothing. The program runs the commands that own returns itself, and hands the command
// lines of the others that are not here to roost-node and roost-sim; own may be nil.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string, own func() []*frame.Command) *frame.App {
	return frame.NewApp(stdin, stdout, stderr, env, func() []*frame.Command {
		if own == nil {
			return commands(nil)
		}
		return commands(own())
	})
}
