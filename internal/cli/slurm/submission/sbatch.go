package submission

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/slurm/cluster"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// slurmVersion is the release of Slurm whose commands these are like.
const slurmVersion = "slurm 24.11.5"

func sbatchCommand() *frame.Command {
	return &frame.Command{
		Name: "sbatch", Group: frame.GroupSlurm, Summary: "submit a batch script of Slurm",
		Synopsis: "[OPTION…] [SCRIPT [ARGUMENT…] | --wrap=COMMAND]", RawArgs: true, MaxOperands: -1, Run: runSbatch,
		LinkProgram: frame.LocalProgram,
		Description: "Submits a script with its #SBATCH lines, or what stands on standard input, and prints the " +
			"number of the job. The script runs once, on the first machine of the job; srun in it runs tasks on all. " +
			"sbatch(1) tells what the options mean here.",
		Examples: []frame.Example{
			{Line: "sbatch -n 4 --mem=8G -t 2:00:00 sim.sh", Description: "submit a script"},
			{Line: "sbatch --array=0-99%10 sim.sh", Description: "a hundred tasks, ten at a time"},
			{Line: "sbatch --wrap='srun hostname' -N 2", Description: "submit a command"},
		},
		Flags: sbatchFlags(),
	}
}

func runSbatch(c *frame.Invocation) error {
	if asksTestOnly(c.Args) { // before the script is read from standard input
		return c.ExecSibling(frame.SimulatorProgram)
	}
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	result, err := sbatch.Parse(c.Args, caller)
	var failure *sbatch.Failure
	switch {
	case errors.As(err, &failure):
		fmt.Fprint(c.Stderr, failure.Text)
		return exitWith(c, failure.Status)
	case err != nil:
		return failWith(c, err)
	case result.Help:
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	case result.Version:
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	}
	if result.TestOnly {
		return c.ExecSibling(frame.SimulatorProgram)
	}
	fmt.Fprint(c.Stderr, result.Warnings)
	c.ScheddNode = cmp.Or(result.Server, c.ScheddNode)
	if err := cluster.Choose(c, c.Command.Name, result.Cluster); err != nil {
		return exitWith(c, 1)
	}
	if result.IsSingleton {
		if err := waitForName(c, &result.Job); err != nil {
			return submitRefused(c, &result, err)
		}
	}
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return submitRefused(c, &result, err)
	}
	id := reply.GetIds()[0]
	number, host, _ := strings.Cut(id, ".")
	switch {
	case result.Quiet:
	case result.Parsable && result.Cluster != "":
		fmt.Fprintf(c.Stdout, "%s;%s\n", number, host)
	case result.Parsable:
		fmt.Fprintln(c.Stdout, number)
	case result.Cluster != "":
		fmt.Fprintf(c.Stdout, "Submitted batch job %s on cluster %s\n", number, host)
	default:
		fmt.Fprintf(c.Stdout, "Submitted batch job %s\n", number)
	}
	if !result.Wait {
		return nil
	}
	return awaitJob(c, id)
}

// waitForName has a job wait for those of its user that have its name and have not ended
// (sbatch(1), "singleton").
func waitForName(c *frame.Invocation, job *jobspec.Job) error {
	list, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Mine: true}})
	if err != nil {
		return err
	}
	waits, _ := job.Ad.Strings(roost.AttrDependsOn)
	for _, s := range list {
		if s.GetName() == job.Name && !document.IsFinal(s) {
			waits = append(waits, "afterany:"+s.GetId())
		}
	}
	if len(waits) > 0 {
		job.Ad.SetStrings(roost.AttrDependsOn, waits)
	}
	return nil
}

// exitWith ends the command after an error of its own. SLURM_EXIT_ERROR is the status
// that the caller would have instead (sbatch(1)).
func exitWith(c *frame.Invocation, status int) error {
	if n, err := strconv.ParseUint(c.Getenv("SLURM_EXIT_ERROR"), 10, 8); err == nil {
		status = int(n)
	}
	return frame.ExitError(status)
}

// failWith prints an error that sbatch has no own words for.
func failWith(c *frame.Invocation, err error) error {
	fmt.Fprintf(c.Stderr, "%s: error: %s\n", c.Command.Name, document.PrintableText(strings.Join(strings.Fields(
		frame.ErrorText(err)), " ")))
	return exitWith(c, 1)
}

// submitRefused prints why the schedd has not taken the job. Clients look for the first
// words.
func submitRefused(c *frame.Invocation, result *sbatch.Result, err error) error {
	partition, reservation := result.Partition, result.Reservation
	text := strings.Join(strings.Fields(frame.ErrorText(err)), " ")
	before := ""
	var kind roost.ErrorKind
	if errors.As(frame.DecodeError(err), &kind) {
		switch {
		case kind == roost.Unavailable:
			text = "Unable to contact slurm controller (connect failure): " + text
		case kind == roost.NotFound && strings.Contains(text, "queue") && reservation != "":
			text = "Requested reservation is invalid: " + text
		case kind == roost.NotFound && strings.Contains(text, "queue"):
			text = "Invalid partition name specified: " + text
			if partition != "" {
				before = c.Command.Name + ": error: invalid partition specified: " + partition + "\n"
			}
		case kind == roost.NotFound && strings.Contains(text, "limit"):
			text = "Invalid license specification: " + text
		case kind == roost.NotFound && strings.Contains(text, "depend"):
			text = "Job dependency problem: " + text
		}
	}
	words := "Batch job submission failed"
	switch c.Command.Name {
	case "srun":
		words = "Unable to allocate resources"
	case "salloc":
		words = "Job submit/allocate failed"
	}
	fmt.Fprintf(c.Stderr, "%s%s: error: %s: %s\n", before, c.Command.Name, words, document.PrintableText(text))
	return exitWith(c, 1)
}

// awaitJob waits for the end of a job. The exit status is the highest of its tasks, and 1
// for one that a signal has killed.
func awaitJob(c *frame.Invocation, id string) error {
	if _, err := jobs.WatchJobs(c, &scheddapi.Selection{Selectors: []string{id}}, jobs.NoProgress{}); err != nil {
		return failWith(c, err)
	}
	list, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{id}},
		History: true, Tasks: true})
	if err != nil {
		return failWith(c, err)
	}
	worst := 0
	for _, s := range list {
		code := int(s.GetExit().GetCode()) & 0xff
		if document.FailedExit(s.GetExit()) || document.StateOf(s) != roost.Completed.String() {
			code = max(code, 1)
		}
		worst = max(worst, code)
	}
	if worst != 0 {
		return frame.ExitError(worst)
	}
	return nil
}
