package cli

import (
	"io"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/classad"
	"github.com/roost-batch/roost/internal/cli/daemons"
	"github.com/roost-batch/roost/internal/cli/doctor"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/node"
	"github.com/roost-batch/roost/internal/cli/owner"
	"github.com/roost-batch/roost/internal/cli/pbs"
	"github.com/roost-batch/roost/internal/cli/pool"
	"github.com/roost-batch/roost/internal/cli/sim"
	"github.com/roost-batch/roost/internal/cli/terminal"
)

// commands is the table of everything, in the order of the help.
func commands() []*frame.Command {
	all := []*frame.Command{
		jobs.SubmitCommand(), jobs.RunCommand(), jobs.TranslateCommand(),
		jobs.ListCommand(), jobs.ShowCommand(), jobs.WhyCommand(), jobs.LogsCommand(),
		terminal.SSHCommand(), jobs.TopCommand(), jobs.WaitCommand(), jobs.HistoryCommand(),
		admin.SharesCommand(),
		jobs.RemoveCommand(), jobs.HoldCommand(), jobs.ReleaseCommand(), jobs.RetryCommand(),
		jobs.CheckpointCommand(), jobs.SuspendCommand(), jobs.ResumeCommand(),
		node.LoginCommand(), node.LoginsCommand(),
		owner.PauseCommand(), owner.MineCommand(), owner.SessionAgentCommand(),
		pool.NodesCommand(), pool.AdsCommand(), doctor.Command(), pool.CellCommand(),
		node.UpCommand(), node.MasterCommand(), node.PKICommand(), node.InitCommand(),
		node.TokenCommand(), node.JoinCommand(), node.LeaveCommand(), node.RevokeCommand(),
		node.InstallCommand(),
		admin.QuotaCommand(), admin.GroupCommand(), admin.LimitCommand(), admin.QueueCommand(),
		admin.DrainCommand(), admin.UndrainCommand(), admin.CommentCommand(),
		admin.ReservationCommand(), admin.AdministratorsCommand(), sim.Command(),
		classad.Command(), completionCommand(), versionCommand(), wordsCommand(),
	}
	all = append(all, pbs.Commands()...)
	return frame.WithCommonFlags(append(all, daemons.Commands()...))
}

// New returns the program with those streams and that environment ("NAME=value"). It
// starts nothing.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string) *frame.App {
	return frame.NewApp(stdin, stdout, stderr, env, commands)
}
