package jobfile

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/submit"
)

// RunCommand returns roost run: run a command in the pool and see its output.
func RunCommand() *frame.Command {
	return &frame.Command{
		Name: "run", Group: frame.GroupRun, Summary: "run a command in the pool and see its output",
		Synopsis: "-- COMMAND [ARGUMENT…]", MinOperands: 1, MaxOperands: -1, OperandName: "a command", FlagsFirst: true,
		Run: runJob,
		Description: "Runs a command on some machine of the pool, in this directory and with this environment, shows " +
			"its output as it comes, and ends with its exit status (128 and the number for a signal). Its standard " +
			"input is empty unless --stdin names a file. Ctrl-C removes the job; a second Ctrl-C leaves at once.",
		Examples: []frame.Example{
			{Line: "roost run -- make test", Description: "run a command"},
			{Line: "roost run --cpus 4 --memory 8GiB --walltime 2h -- ./simulate --steps 1000",
				Description: "ask for resources and a limit"},
		},
		Flags: append(requestFlags(),
			&ucli.BoolFlag{Name: "detach", Usage: "print the id and do not wait; the output is kept for roost logs"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but the job's own output"},
		),
	}
}

// requestFlags say what a job is to get.
func requestFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "name", Aliases: []string{"N"}, Usage: "the job's `NAME`"},
		&ucli.StringFlag{Name: "cpus", Aliases: []string{"c"}, Usage: "so many cores `N`, as in 4 or 0.5"},
		&ucli.StringFlag{Name: "memory", Aliases: []string{"m"}, Usage: "so much memory `SIZE`, as in 4GiB"},
		&ucli.StringFlag{Name: "disk", Usage: "so much disk `SIZE`, as in 20GiB"},
		&ucli.IntFlag{Name: "gpus", Aliases: []string{"g"}, Usage: "so many GPUs `N`"},
		&ucli.StringFlag{Name: "gpu-memory",
			Usage: "so much memory `SIZE` of each GPU, as in 10GiB; others may share the rest"},
		&ucli.StringFlag{Name: "app-class", Usage: "the `CLASS` of work: batch, or stream for what must start at once"},
		&ucli.StringFlag{Name: "walltime", Aliases: []string{"t"},
			Usage: "end the job after this `TIME`, as in 90m or 01:30:00"},
		&ucli.StringFlag{Name: "band", Usage: "the priority `BAND`: free, batch, production or monitoring"},
		&ucli.IntFlag{Name: "priority", Aliases: []string{"p"},
			Usage: "order among your own jobs, `N` from -1024 to 1023"},
		&ucli.StringFlag{Name: "group", Usage: "charge this accounting `GROUP`"},
		&ucli.StringFlag{Name: "requirements", Usage: "run only on machines that satisfy the ClassAd `EXPR`"},
		&ucli.StringFlag{Name: "rank", Usage: "prefer machines for which the ClassAd `EXPR` is high"},
		&ucli.StringFlag{Name: "directory", Aliases: []string{"C"}, Usage: "run in this `DIR`"},
		&ucli.StringFlag{Name: "stdin", Usage: "read standard input from this `FILE`"},
		&ucli.StringSliceFlag{Name: "input", Usage: "a `FILE` that the job needs; may be repeated"},
		&ucli.StringSliceFlag{Name: "output", Usage: "a `FILE` that it makes; may be repeated"},
		&ucli.StringSliceFlag{Name: "env", Aliases: []string{"e"},
			Usage: "set a variable of its environment, as `NAME=VALUE`; may be repeated"},
		&ucli.BoolFlag{Name: "clean-env", Usage: "do not take this environment along"},
		&ucli.IntFlag{Name: "retries", Usage: "run it again, at most `N` times, if it fails"},
		&ucli.StringSliceFlag{Name: "after",
			Usage: "start after this `JOB` has succeeded, or as afterany:JOB; may be repeated"},
	}
}

func requestFromFlags(c *frame.Invocation) submit.JobFlags {
	return submit.JobFlags{
		Name: c.StringFlag("name"), Directory: c.StringFlag("directory"), CPUs: c.StringFlag("cpus"),
		Memory: c.StringFlag("memory"), Disk: c.StringFlag("disk"), GPUs: c.CountFlag("gpus"),
		GPUMemory: c.StringFlag("gpu-memory"), AppClass: c.StringFlag("app-class"),
		Walltime: c.StringFlag("walltime"), Band: c.StringFlag("band"), Priority: c.CountFlag("priority"),
		Group: c.StringFlag("group"), Requirements: c.StringFlag("requirements"),
		Rank: c.StringFlag("rank"), Stdin: c.StringFlag("stdin"), Inputs: c.StringsFlag("input"),
		Outputs: c.StringsFlag("output"), Environment: c.StringsFlag("env"),
		GetEnv: !c.Flag("clean-env"), Retries: c.CountFlag("retries"), DependsOn: c.StringsFlag("after"),
	}
}

func runJob(c *frame.Invocation) error {
	opts, err := c.SubmitOptions()
	if err != nil {
		return err
	}
	job, err := submit.Command(c.Args, requestFromFlags(c), opts)
	if err != nil {
		return err
	}
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := jobs.SubmitJobs(c, []submit.Job{job}, "", nil)
	if err != nil {
		return err
	}
	if len(reply.GetIds()) != 1 {
		return frame.KindErrorf(roost.Internal, "the schedd took one job and gave %d ids", len(reply.GetIds()))
	}
	id := reply.GetIds()[0]
	if c.Flag("detach") {
		fmt.Fprintln(c.Stdout, id)
		return nil
	}
	return jobs.AttachJob(c, id, signals, c.Flag("quiet"))
}
