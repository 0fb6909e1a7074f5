package steps

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// Outside runs a command in an allocation of its own.
type Outside func(c *frame.Invocation, given []getopt.Given, command []string) error

// Entries are the commands of this package. outside runs srun where it is in no job.
func Entries(outside Outside) []frame.CommandEntry {
	return []frame.CommandEntry{
		frame.Entry("srun", func() *frame.Command { return SrunCommand(outside) }),
		frame.Entry("sbcast", SbcastCommand), frame.Entry(agentCommand, AgentCommand),
		frame.Entry(ControlCommandName, ControlCommand), frame.Entry("mpiexec", MpiexecCommand),
	}
}

// SrunCommand returns srun.
func SrunCommand(outside Outside) *frame.Command {
	return &frame.Command{
		Name: "srun", Group: frame.GroupSlurm, Summary: "run the tasks of a step",
		Synopsis: "[OPTION…] COMMAND [ARGUMENT…]", RawArgs: true, MaxOperands: -1,
		Run:         func(c *frame.Invocation) error { return runSrun(c, outside) },
		LinkProgram: frame.LocalProgram,
		Description: "Inside a job, runs tasks on the machines of the job, with its standard input for all of them, " +
			"and what they write on its own streams. Outside it submits a job for them. Ends with the highest exit " +
			"status of the tasks.",
		Examples: []frame.Example{
			{Line: "srun hostname", Description: "once on each machine of the job"},
			{Line: "srun -n 4 -c 2 -l ./program",
				Description: "four tasks of two processors, with their numbers before each line"},
		},
		Flags: srunFlags(),
	}
}

// AgentCommand returns the agent of srun on another machine.
func AgentCommand() *frame.Command {
	return &frame.Command{Name: agentCommand, Group: frame.GroupMore, Hidden: true, RawArgs: true, MaxOperands: -1,
		Summary: "run tasks for srun on another machine of the job", Run: serveAgent}
}

// srunFlags are the options for the manual.
func srunFlags() []ucli.Flag {
	text := func(name, letter, usage string) ucli.Flag {
		f := &ucli.StringFlag{Name: name, Usage: usage}
		if letter != "" {
			f.Aliases = []string{letter}
		}
		return f
	}
	boolean := func(name, letter, usage string) ucli.Flag {
		f := &ucli.BoolFlag{Name: name, Usage: usage}
		if letter != "" {
			f.Aliases = []string{letter}
		}
		return f
	}
	return []ucli.Flag{
		text("nodes", "N", "run on so many machines `COUNT`"),
		text("ntasks", "n",
			"run so many tasks `COUNT`; otherwise those of the job, or one on each machine"),
		text("ntasks-per-node", "", "so many tasks `COUNT` on each machine"),
		text("cpus-per-task", "c", "so many processors `COUNT` for each task"),
		text("nodelist", "w", "run on these machines `HOSTS`"),
		text("exclude", "x", "not on these machines `HOSTS`"),
		text("relative", "r", "begin with the machine of this number `N` in the job, from 0"),
		text("distribution", "m", "fill one machine after the other, or go round: `block|cyclic`"),
		boolean("overlap", "", "share the processors with other steps, and do not wait for them"),
		boolean("exact", "", "take just the processors that the tasks need, which is so in any case"),
		boolean("overcommit", "O", "run more tasks than there are processors"),
		text("output", "o", "write standard output to this `FILE`; srun(1) has the patterns, as in %t"),
		text("error", "e", "write standard error to this `FILE`"),
		text("input", "i", "read standard input from this `FILE`"),
		boolean("label", "l", "put the number of the task before each line"),
		boolean("unbuffered", "u", "write what comes at once, and not whole lines"),
		text("chdir", "D", "run in this `DIR`"),
		text("export", "", "take these `VARIABLES` along: ALL, NONE, or NAME and NAME=VALUE with commas between"),
		text("kill-on-bad-exit", "K", "end the step when a task has not ended well; 0 in `VALUE`: do not"),
		text("wait", "W", "end the step so many `SECONDS` after its first task"),
		text("time", "t", "end the step after this `TIME`"),
		boolean("multi-prog", "", "read a program for each task from the file that is named instead of a command"),
		text("mpi", "", "how ranks find each other `KIND`: pmi1, pmi2 or none; list prints them"),
		boolean("pty", "", "run one task with this terminal"),
		text("jobid", "", "outside of a job: run the step in this `JOB`"),
		boolean("immediate", "I", "do not wait for processors"),
		boolean("quiet", "Q", "do not report waits"),
	}
}
