// Package nodeprogram is the table of the commands that the program roost-node runs: what
// sets a node up, runs and examines it, and the commands of a machine's owner. They need
// packages that would delay the start of every other command.
package nodeprogram

import (
	"github.com/roost-batch/roost/internal/cli/backup"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/daemons"
	"github.com/roost-batch/roost/internal/cli/doctor"
	"github.com/roost-batch/roost/internal/cli/flows"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/images"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/node"
	"github.com/roost-batch/roost/internal/cli/operate"
	"github.com/roost-batch/roost/internal/cli/owner"
	"github.com/roost-batch/roost/internal/cli/pilots"
)

// Commands returns the commands that roost-node runs itself.
func Commands() []*frame.Command {
	return append([]*frame.Command{
		jobs.ResumeCommand(owner.ResumeMachine), cell.CellCommand(node.RecoverCell),
		node.LoginCommand(), node.LoginsCommand(), node.WebCommand(),
		owner.PauseCommand(), owner.MineCommand(), owner.SessionAgentCommand(),
		doctor.Command(), operate.DiagnoseCommand(), backup.Command(), backup.RestoreCommand(),
		images.ImageCommand(), images.PackageCommand(), images.BuilderCommand(),
		flows.FlowCommand(), flows.MakeCommand(), flows.SubmitDAGCommand(), flows.CheckerCommand(),
		node.UpCommand(), node.MasterCommand(), node.ConfigCommand(), node.ReloadCommand(), node.LogLevelCommand(),
		node.PKICommand(), node.InitCommand(),
		node.TokenCommand(), node.JoinCommand(), node.LeaveCommand(), node.RevokeCommand(),
		node.InstallCommand(), node.PilotCommand(), node.PeerCommand(), pilots.Command(),
	}, daemons.Commands()...)
}
