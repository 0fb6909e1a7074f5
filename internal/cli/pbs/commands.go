package pbs

import (
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/pbs/reservation"
)

// Commands are the PBS commands in the order of the help.
func Commands() []*frame.Command {
	all := []*frame.Command{
		qsubCommand(), qstatCommand(), qdelCommand(), qholdCommand(), qrlsCommand(), qsigCommand(), qmsgCommand(),
		qrerunCommand(), qselectCommand(), tracejobCommand(),
		qalterCommand(), qmoveCommand(), qorderCommand(), qrunCommand(), pbsnodesCommand(), pbsdshCommand(),
		pbsTmrshCommand(), pbsReleaseNodesCommand(), qmgrCommand(),
		reservation.SubmitCommand(), reservation.StatusCommand(),
		reservation.AlterCommand(), reservation.DeleteCommand(),
		printjobCommand(), pbsAttachCommand(), pbsHostnCommand(),
	}
	all = append(all, qswitchCommands()...)
	for _, c := range all {
		switch c.Name {
		case "pbsdsh", "pbs_tmrsh", "pbs_attach", "pbs_hostn": // they ask no schedd, or the one of their job
		default:
			c.Prepare = pbsframe.ReadServerVariable
		}
	}
	return all
}
