package pbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

func qsubCommand() *frame.Command {
	return &frame.Command{
		Name: "qsub", Group: frame.GroupPBS, Summary: "submit a PBS script",
		Synopsis: "[options] [SCRIPT | -- COMMAND [ARGUMENT…]]", RawArgs: true, MaxOperands: -1, Run: runQsub,
		Description: "Submits a script with its #PBS lines, or what stands on standard input, or a command behind " +
			"--, and prints the id of the job. What the options mean is as OpenPBS has it; roost-pbs(7) tells the " +
			"differences.",
		Examples: []frame.Example{
			{Line: "qsub -N sim -l select=1:ncpus=4:mem=8gb -l walltime=2:00:00 sim.sh",
				Description: "submit a script"},
			{Line: "qsub -J 0-99 -- ./work", Description: "a hundred tasks, told apart by $PBS_ARRAY_INDEX"},
		},
		Flags: qsubFlags(),
	}
}

func runQsub(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	if len(c.Args) == 1 && c.Args[0] == drmaaOption {
		return runDRMAA(c)
	}
	result, err := parseQsub(c)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintln(c.Stderr, refused.Text)
		return frame.ExitError(refused.ExitStatus)
	}
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	if result.Interactive && c.FallbackProgram != "" && terminal.OpenTerminal(c).In != nil {
		return c.ExecSibling(c.FallbackProgram)
	}
	c.ScheddNode = cmp.Or(result.Server, c.ScheddNode)
	for _, w := range result.Warnings {
		fmt.Fprintln(c.Stderr, w)
	}
	var k terminal.LocalTerminal
	if result.Interactive {
		if k, err = askTerminal(c); err != nil {
			return err
		}
	}
	var signals <-chan os.Signal
	if result.Interactive || result.Block { // the others end at once
		var release func()
		signals, release = c.NotifyInterrupts(syscall.SIGHUP, syscall.SIGQUIT)
		defer release()
	}
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return qsubRefused(c, err)
	}
	id := pbsframe.IDText(reply.GetIds()[0], result.Job.Array)
	if result.Interactive {
		return attachTerminal(c, k, id, reply.GetIds()[0], signals)
	}
	if !result.Quiet {
		fmt.Fprintln(c.Stdout, id)
	}
	if !result.Block {
		return nil
	}
	return awaitBlocked(c, id, reply.GetIds()[0], signals)
}

func parseQsub(c *frame.Invocation) (qsub.QsubResult, error) {
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return qsub.QsubResult{}, err
	}
	return qsub.ParseQsub(c.Args, caller)
}

// qsubRefused prints why the schedd did not take the job, as PBS would say it.
func qsubRefused(c *frame.Invocation, err error) error {
	var kind roost.ErrorKind
	if errors.As(frame.DecodeError(err), &kind) {
		if refused, ok := qsub.RefusalFor(kind, strings.Join(strings.Fields(frame.ErrorText(err)), " ")); ok {
			fmt.Fprintln(c.Stderr, refused.Text)
			return frame.ExitError(refused.ExitStatus)
		}
	}
	return pbsframe.Fail(c, err)
}
