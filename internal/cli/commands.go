package cli

import (
	"io"
	"slices"

	"github.com/roost-batch/roost/internal/cli/accounts"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/classad"
	"github.com/roost-batch/roost/internal/cli/condor"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobfile"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/names"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/cli/pbs"
	"github.com/roost-batch/roost/internal/cli/pbs/jobnodes"
	"github.com/roost-batch/roost/internal/cli/pipe"
	"github.com/roost-batch/roost/internal/cli/pool"
	"github.com/roost-batch/roost/internal/cli/progressbar"
	"github.com/roost-batch/roost/internal/cli/slurm/reports"
	"github.com/roost-batch/roost/internal/cli/slurm/steps"
	"github.com/roost-batch/roost/internal/cli/slurm/submission"
	"github.com/roost-batch/roost/internal/cli/storedfiles"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/cli/translation"
)

// entries is the table of everything, in the order of the help.
func entries() []frame.CommandEntry {
	all := []frame.CommandEntry{
		frame.Entry("submit", jobfile.SubmitCommand), frame.Entry("run", jobfile.RunCommand),
		frame.Entry("translate", translation.TranslateCommand),
		nodeEntry("flow", frame.GroupRun, "run DAG files, whose jobs run in an order"),
		nodeEntry("make", frame.GroupRun, "run the recipes of a makefile on the pool"),
		frame.Entry("jobs", jobs.ListCommand, "ls"), frame.Entry("show", jobs.ShowCommand),
		frame.Entry("why", jobs.WhyCommand), frame.Entry("logs", jobs.LogsCommand),
		frame.Entry("fetch", storedfiles.FetchCommand),
		frame.Entry("ssh", terminal.SSHCommand), frame.Entry("top", jobs.TopCommand),
		frame.Entry("wait", func() *frame.Command { return jobs.WaitCommand(progressbar.New) }), frame.Entry("history",
			jobs.HistoryCommand),
		frame.Entry("cron", jobs.CronCommand),
		frame.Entry("usage", accounts.UsageCommand), frame.Entry("report", accounts.ReportCommand),
		frame.Entry("sacct", accounts.SacctCommand), frame.Entry("statement", accounts.StatementCommand),
		frame.Entry("shares", admin.SharesCommand),
		frame.Entry("rm", jobs.RemoveCommand, "remove", "cancel"), frame.Entry("hold", jobs.HoldCommand),
		frame.Entry("release", jobs.ReleaseCommand), frame.Entry("retry", jobs.RetryCommand),
		nodeEntry("image", frame.GroupChange, "container images for your tasks"),
		nodeEntry("package", frame.GroupChange, "packages for your tasks, and their labels"),
		frame.Entry("secret", jobs.SecretCommand), frame.Entry("alloc", jobs.AllocCommand),
		frame.Entry("update", jobfile.UpdateCommand), frame.Entry("restart", jobfile.RestartCommand),
		frame.Entry("scale", jobfile.ScaleCommand),
		frame.Entry("checkpoint", jobs.CheckpointCommand), frame.Entry("suspend", jobs.SuspendCommand),
		frame.Entry("resume", func() *frame.Command { return jobs.ResumeCommand(execNodeProgram) }),
		nodeEntry("login", frame.GroupChange, "act on your jobs at another node from this machine"),
		nodeEntry("logins", frame.GroupChange, "list and revoke your logins from other machines"),
		nodeEntry("web", frame.GroupSee, "log in to the pages of the pool"),
		nodeEntry("pause", frame.GroupOwner, "keep the pool off your machine"),
		nodeEntry("mine", frame.GroupOwner, "what the pool does on your machine"),
		nodeEntry("pilots", frame.GroupChange, "get machines for your tasks from other batch systems"),
		nodeEntry("session-agent", frame.GroupOwner, "tell the guard of this machine that you are there"),
		frame.Entry("names", names.NamesCommand), frame.Entry("proxy", names.ProxyCommand),
		frame.Entry("nodes", pool.NodesCommand), frame.Entry("ads", pool.AdsCommand),
		nodeEntry("doctor", frame.GroupPool, "check that the pool and this machine are well"),
		nodeEntry("diagnose", frame.GroupPool, "measure what makes the daemons of this machine slow"),
		nodeEntry("backup", frame.GroupPool, "write what this node stores into an archive"),
		nodeEntry("restore", frame.GroupPool, "put back what roost backup has written"),
		frame.Entry("cell", func() *frame.Command { return cell.CellCommand(execNodeProgram) }),
		nodeEntry("up", frame.GroupPool, "run a whole pool on this machine"),
		nodeEntry("master", frame.GroupPool, "run the daemons that a node file names"),
		nodeEntry("config", frame.GroupPool, "check node files before daemons read them"),
		nodeEntry("reload", frame.GroupPool, "make the daemons of this machine read their settings again"),
		nodeEntry("log-level", frame.GroupPool, "change what daemons of this machine log, for a time"),
		nodeEntry("pki", frame.GroupPool, "make the certificates by which nodes know each other"),
		nodeEntry("init", frame.GroupPool, "begin a pool on this machine"),
		nodeEntry("token", frame.GroupPool, "let another machine into the pool"),
		nodeEntry("peer", frame.GroupPool, "lend machines to other pools, and borrow theirs"),
		nodeEntry("join", frame.GroupPool, "make this machine a member of a pool"),
		nodeEntry("pilot", frame.GroupPool, "run your tasks in an allocation of another batch system"),
		nodeEntry("leave", frame.GroupPool, "take this machine out of its pool"),
		nodeEntry("revoke", frame.GroupPool, "put a machine out of the pool"),
		nodeEntry("install", frame.GroupPool, "put programs, manual, completions and units on this machine"),
	}
	return slices.Concat(all, administratorEntries(), pbsEntries(), condorEntries(), slurmEntries(),
		daemonEntries())
}

// administratorEntries are the commands of administrators, and what belongs to no group.
func administratorEntries() []frame.CommandEntry {
	return []frame.CommandEntry{
		frame.Entry("quota", admin.QuotaCommand), frame.Entry("group", admin.GroupCommand),
		frame.Entry("limit", admin.LimitCommand), frame.Entry("queue", admin.QueueCommand),
		frame.Entry("drain", admin.DrainCommand), frame.Entry("undrain", admin.UndrainCommand),
		frame.Entry("comment", admin.CommentCommand), frame.Entry("reservation", admin.ReservationCommand),
		frame.Entry("admin", admin.AdministratorsCommand), frame.Entry("rate", accounts.RateCommand),
		frame.Entry("budget", accounts.BudgetCommand), frame.Entry("adjustment", accounts.AdjustmentCommand),
		frame.Entry("sim", func() *frame.Command {
			return &frame.Command{Name: "sim", Group: frame.GroupAdmin, RawArgs: true, Program: frame.SimulatorProgram,
				Summary: "try on machines that are not there what a pool would do"}
		}),
		frame.Entry("accounting", func() *frame.Command {
			return &frame.Command{Name: "accounting", Group: frame.GroupAdmin, RawArgs: true,
				Program: frame.AccountantProgram, Summary: "copy the accounts of a pool to another database"}
		}),
		frame.Entry("classad", classad.Command), frame.Entry("completion", completionCommand),
		frame.Entry("version", versionCommand), frame.Entry("words", wordsCommand),
		frame.Entry("api", pipe.Command),
	}
}

// pbsEntries are the PBS commands.
func pbsEntries() []frame.CommandEntry {
	all := pbs.Entries()
	insertAfter := func(name string, more ...frame.CommandEntry) {
		i := slices.IndexFunc(all, func(e frame.CommandEntry) bool { return e.Names[0] == name })
		all = slices.Insert(all, i+1, more...)
	}
	insertAfter("pbsnodes", frame.Entry("pbsdsh", jobnodes.DistributeCommand),
		frame.Entry("pbs_tmrsh", jobnodes.ShellCommand))
	insertAfter("pbs_attach", frame.Entry("pbs_hostn", jobnodes.HostNameCommand))
	return all
}

// condorEntries are the commands of HTCondor.
func condorEntries() []frame.CommandEntry {
	return append(condor.Entries(),
		nodeEntry("condor_submit_dag", frame.GroupCondor, "run the flow of DAG files"),
		nodeEntry("condor_dag_checker", frame.GroupCondor, "report all mistakes of DAG files"))
}

// slurmEntries are the commands of Slurm.
func slurmEntries() []frame.CommandEntry {
	return slices.Concat(submission.Entries(), reports.Entries(), steps.Entries(submission.RunOutside))
}

// nodeEntry is the entry of a command that roost-node runs. Its flags and help are there.
func nodeEntry(name, group, summary string) frame.CommandEntry {
	return frame.Entry(name, func() *frame.Command {
		return &frame.Command{Name: name, Group: group, Summary: summary, Hidden: summary == "", RawArgs: true,
			Program: frame.NodeProgram}
	})
}

// daemonEntries are the daemons and agents. Masters and daemons start them from
// roost-daemon, people seldom as a command of roost.
func daemonEntries() (all []frame.CommandEntry) {
	for _, name := range []string{"collector", "negotiator", "schedd", "startd", "guard", "authority",
		"checkpoint-server", "accountant", "files-agent", "files-tree", "shell-agent", "checkpoint-agent",
		"idle-agent", "image-builder"} {
		all = append(all, nodeEntry(name, frame.GroupMore, ""))
	}
	return all
}

// commands makes all commands, in the order of the help. The commands in own replace
// those of the same name.
func commands(own []*frame.Command) []*frame.Command {
	all := frame.MakeCommands(entries())
	for _, c := range own {
		*frame.FindCommand(all, c.Name) = *c
	}
	return frame.WithCommonFlags(all)
}

// findCommand makes the command of a name or alias; nil where there is none. Those in own
// come first.
func findCommand(name string, own []*frame.Command) *frame.Command {
	c := frame.FindCommand(own, name)
	if c == nil {
		c = frame.FindEntry(entries(), name)
	}
	if c == nil {
		return nil
	}
	return frame.WithCommonFlags([]*frame.Command{c})[0]
}

func execNodeProgram(c *frame.Invocation) error { return c.ExecSibling(frame.NodeProgram) }

// New returns a program with those streams and that environment ("NAME=value"). It starts
// nothing. The program runs the commands that own returns itself, and hands the command
// lines of the others that are not here to roost-node and roost-sim; own may be nil.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string, own func() []*frame.Command) *frame.App {
	if own == nil {
		own = func() []*frame.Command { return nil }
	}
	a := frame.NewApp(stdin, stdout, stderr, env, func() []*frame.Command { return commands(own()) })
	a.Dialer = nodeaccess.Dialer{}
	a.Find = func(name string) *frame.Command { return findCommand(name, own()) }
	return a
}
