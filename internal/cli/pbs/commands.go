package pbs

import (
	"slices"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/pbs/reservation"
)

// Entries is the table of the PBS commands in the order of the help. Those of package
// jobnodes are not in it.
func Entries() []frame.CommandEntry {
	return slices.Concat(LocalEntries(), []frame.CommandEntry{
		scheddEntry("tracejob", tracejobCommand),
		scheddEntry("qalter", qalterCommand), scheddEntry("qmove", qmoveCommand),
		scheddEntry("qorder", qorderCommand), scheddEntry("qrun", qrunCommand),
		scheddEntry("pbsnodes", pbsnodesCommand),
		scheddEntry("pbs_release_nodes", pbsReleaseNodesCommand),
		scheddEntry("qmgr", qmgrCommand),
		scheddEntry("pbs_rsub", reservation.SubmitCommand), scheddEntry("pbs_rstat", reservation.StatusCommand),
		scheddEntry("pbs_ralter", reservation.AlterCommand), scheddEntry("pbs_rdel", reservation.DeleteCommand),
		scheddEntry("printjob", printjobCommand), frame.Entry("pbs_attach", pbsAttachCommand),
		scheddEntry("qenable", qenableCommand), scheddEntry("qdisable", qdisableCommand),
		scheddEntry("qstart", qstartCommand), scheddEntry("qstop", qstopCommand),
	})
}

// LocalEntries is the beginning of that table: the commands that scripts call often. The
// program roost-q has them, too.
func LocalEntries() []frame.CommandEntry {
	return []frame.CommandEntry{
		localEntry("qsub", qsubCommand), localEntry("qstat", qstatCommand), localEntry("qdel", qdelCommand),
		localEntry("qhold", qholdCommand), localEntry("qrls", qrlsCommand), localEntry("qsig", qsigCommand),
		localEntry("qmsg", qmsgCommand), localEntry("qrerun", qrerunCommand), localEntry("qselect", qselectCommand),
	}
}

// localEntry is a scheddEntry whose link leads to roost-q.
func localEntry(name string, construct func() *frame.Command) frame.CommandEntry {
	return scheddEntry(name, func() *frame.Command {
		c := construct()
		c.LinkProgram = frame.LocalProgram
		return c
	})
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
