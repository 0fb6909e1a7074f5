package pbs

import (
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/pbs/reservation"
)

// Commands are the PBS commands in the order of the help.
func Commands() []*frame.Command { return frame.MakeCommands(Entries()) }

// Entries is the table of the PBS commands in the order of the help.
func Entries() []frame.CommandEntry {
	return []frame.CommandEntry{
		scheddEntry("qsub", qsubCommand), scheddEntry("qstat", qstatCommand), scheddEntry("qdel", qdelCommand),
		scheddEntry("qhold", qholdCommand), scheddEntry("qrls", qrlsCommand), scheddEntry("qsig", qsigCommand),
		scheddEntry("qmsg", qmsgCommand), scheddEntry("qrerun", qrerunCommand),
		scheddEntry("qselect", qselectCommand), scheddEntry("tracejob", tracejobCommand),
		scheddEntry("qalter", qalterCommand), scheddEntry("qmove", qmoveCommand),
		scheddEntry("qorder", qorderCommand), scheddEntry("qrun", qrunCommand),
		scheddEntry("pbsnodes", pbsnodesCommand), frame.Entry("pbsdsh", pbsdshCommand),
		frame.Entry("pbs_tmrsh", pbsTmrshCommand), scheddEntry("pbs_release_nodes", pbsReleaseNodesCommand),
		scheddEntry("qmgr", qmgrCommand),
		scheddEntry("pbs_rsub", reservation.SubmitCommand), scheddEntry("pbs_rstat", reservation.StatusCommand),
		scheddEntry("pbs_ralter", reservation.AlterCommand), scheddEntry("pbs_rdel", reservation.DeleteCommand),
		scheddEntry("printjob", printjobCommand), frame.Entry("pbs_attach", pbsAttachCommand),
		frame.Entry("pbs_hostn", pbsHostnCommand),
		scheddEntry("qenable", qenableCommand), scheddEntry("qdisable", qdisableCommand),
		scheddEntry("qstart", qstartCommand), scheddEntry("qstop", qstopCommand),
	}
}

// scheddEntry is the entry of a command that asks a schedd. The others ask none, or the
// one of their job.
func scheddEntry(name string, construct func() *frame.Command) frame.CommandEntry {
	return frame.Entry(name, func() *frame.Command {
		c := construct()
		c.Prepare = pbsframe.ReadServerVariable
		return c
	})
}
