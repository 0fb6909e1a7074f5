package submission

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
)

// Entries are the commands of this package.
func Entries() []frame.CommandEntry {
	return []frame.CommandEntry{frame.Entry("sbatch", sbatchCommand), frame.Entry("scancel", scancelCommand),
		frame.Entry("salloc", sallocCommand),
		frame.Entry("sattach", sattachCommand)}
}

func textFlag(name, letter, usage string) ucli.Flag {
	f := &ucli.StringFlag{Name: name, Usage: usage}
	if letter != "" {
		f.Aliases = []string{letter}
	}
	return f
}

func switchFlag(name, letter, usage string) ucli.Flag {
	f := &ucli.BoolFlag{Name: name, Usage: usage}
	if letter != "" {
		f.Aliases = []string{letter}
	}
	return f
}

// sbatchFlags are the options for the manual.
func sbatchFlags() []ucli.Flag {
	return []ucli.Flag{
		textFlag("account", "A", "charge this accounting `GROUP`"),
		textFlag("array", "a", "a job for each of these `INDEXES`, as in 0-15:4,20%3"),
		textFlag("begin", "b", "not before this `TIME`"),
		textFlag("chdir", "D", "run in this `DIR`"),
		textFlag("clusters", "M", "submit to the queue of this `NODE`"),
		textFlag("constraint", "C", "only on machines with these `FEATURES`"),
		textFlag("cpus-per-task", "c", "so many processors `COUNT` for each task"),
		textFlag("dependency", "d", "when these `JOBS` have started or ended, as in afterok:12"),
		textFlag("error", "e", "write standard error to this `FILE`"),
		textFlag("exclude", "x", "not on these machines `HOSTS`"),
		switchFlag("exclusive", "", "whole machines"),
		textFlag("export", "", "take these `VARIABLES` along: ALL, NONE, or names and NAME=VALUE"),
		textFlag("gpus", "G", "so many GPUs `COUNT` in all"),
		textFlag("gpus-per-node", "", "so many GPUs `COUNT` on each machine"),
		textFlag("gpus-per-task", "", "so many GPUs `COUNT` for each task"),
		textFlag("gres", "", "GPUs of each machine, as in gpu:2: `LIST`"),
		switchFlag("hold", "H", "hold it"),
		textFlag("input", "i", "read standard input from this `FILE`"),
		textFlag("job-name", "J", "its `NAME`"),
		textFlag("licenses", "L", "take these licenses `LIST`, as in matlab:2"),
		textFlag("mail-type", "", "send mail for these `EVENTS`: BEGIN, END, FAIL, ALL"),
		textFlag("mail-user", "", "to this `ADDRESS`"),
		textFlag("mem", "", "so much memory of each machine `SIZE`; a number is MiB"),
		textFlag("mem-per-cpu", "", "so much memory for each processor `SIZE`"),
		textFlag("mem-per-gpu", "", "so much memory for each GPU `SIZE`"),
		textFlag("nice", "", "run it after others of yours: `N`"),
		textFlag("nodelist", "w", "on these machines `HOSTS`"),
		textFlag("nodes", "N", "so many machines `COUNT`"),
		switchFlag("no-requeue", "", "do not run it again when its machine is lost"),
		textFlag("ntasks", "n", "so many tasks `COUNT`"),
		textFlag("ntasks-per-node", "", "so many tasks `COUNT` on each machine"),
		textFlag("open-mode", "", "append to the output files, or truncate them first: `MODE`"),
		textFlag("output", "o", "write standard output to this `FILE`, as in slurm-%j.out"),
		switchFlag("parsable", "", "print the number alone"),
		textFlag("partition", "p", "in this `QUEUE`"),
		switchFlag("quiet", "Q", "print nothing"),
		textFlag("reservation", "", "in this reservation `NAME`"),
		textFlag("signal", "", "before the time limit, as in B:USR2@30: `SIGNAL`"),
		textFlag("time", "t", "end it after this `TIME`, as in 1-02:30:00; a number is minutes"),
		switchFlag("test-only", "", "submit nothing, and print when the job would start"),
		switchFlag("wait", "W", "wait for its end, and exit with its exit status"),
		textFlag("wrap", "", "run this `COMMAND` instead of a script"),
	}
}

// sallocFlags are the options for the manual.
func sallocFlags() []ucli.Flag {
	return []ucli.Flag{
		textFlag("nodes", "N", "so many machines `COUNT`"), textFlag("ntasks", "n", "so many tasks `COUNT`"),
		textFlag("cpus-per-task", "c", "so many processors `COUNT` for each task"),
		textFlag("mem", "", "so much memory of each machine `SIZE`; a number is MiB"),
		textFlag("gpus", "G", "so many GPUs `COUNT` in all"), textFlag("partition", "p", "in this `QUEUE`"),
		textFlag("time", "t", "give it back after this `TIME`"), switchFlag("quiet", "Q", "print nothing"),
		switchFlag("no-shell", "", "run no command, and leave the allocation to srun --jobid"),
	}
}

// scancelFlags are the options for the manual.
func scancelFlags() []ucli.Flag {
	return []ucli.Flag{
		textFlag("account", "A", "jobs of this accounting `GROUP`"),
		textFlag("clusters", "M", "in the queue of this `NODE`"),
		switchFlag("me", "", "jobs of yours"),
		textFlag("name", "n", "jobs of this `NAME`"),
		textFlag("partition", "p", "jobs in this `QUEUE`"),
		switchFlag("quiet", "Q", "taken, and does nothing"),
		textFlag("signal", "s", "send this `SIGNAL` instead"),
		textFlag("state", "t", "jobs in this `STATE`: PENDING, RUNNING, SUSPENDED"),
		textFlag("user", "u", "jobs of this `USER`"),
	}
}
