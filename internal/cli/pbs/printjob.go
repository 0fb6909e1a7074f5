package pbs

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func printjobCommand() *frame.Command {
	return &frame.Command{
		Name: "printjob", Group: frame.GroupPBS, Summary: "print what is known of a job, or its script",
		Synopsis: "[-a | -s] JOB…", RawArgs: true, MaxOperands: -1, Run: printjob,
		Description: "Prints how jobs stand and their attributes, also of those that have ended. There are no files " +
			"of jobs to be read: an operand is the id of a job.",
		Examples: []frame.Example{
			{Line: "printjob 123", Description: "everything about a job"},
			{Line: "printjob -s 123", Description: "its script, which only its user and administrators see"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("a", "", "without the attributes"),
			pbsframe.ShortFlag("s", "", "only the script")},
	}
}

func printjob(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "as")
	switch {
	case err != nil:
		return pbsframe.PrintUsage(c, err.Error())
	case len(o.Operands) == 0 || o.IsSet('a') && o.IsSet('s'):
		return pbsframe.PrintUsage(c, "")
	}
	code := 0
	for _, text := range o.Operands {
		if failed := printJob(c, strings.TrimSpace(text), &o); failed != 0 {
			code = failed
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// printJob prints one job, and returns the exit status for it.
func printJob(c *frame.Invocation, text string, o *pbsframe.Options) int {
	id, ok := pbsframe.ParseID(text)
	if !ok {
		fmt.Fprintf(c.Stderr, "printjob: illegally formed job identifier: %s\n", qstat.VisibleText(text))
		return 1
	}
	s, err := jobs.FindJob(c, id, &scheddapi.QueryRequest{Ads: true})
	if err != nil {
		return printOperandError(c, text, err, false)
	}
	j := newPBSJob(c, s)
	if o.IsSet('s') {
		return printScript(c, j)
	}
	rule := strings.Repeat("-", 51)
	fmt.Fprintf(c.Stdout, "%s\njobid:\t\t%s\n%s\n", rule, pbsframe.IDText(s.GetId(), s.GetArray()), rule)
	for _, line := range [][2]string{{"state:", pbsState(s)}, {"substate:", j.substate()}, {"queue:", pbsQueue(s)},
		{"owner:", s.GetOwner() + "@" + j.host}, {"host:", s.GetNode()}} {
		if line[1] != "" {
			fmt.Fprintf(c.Stdout, "%-10s\t%s\n", line[0], qstat.VisibleText(line[1]))
		}
	}
	if o.IsSet('a') {
		return 0
	}
	fmt.Fprintln(c.Stdout, "--attributes--")
	for _, a := range j.attributes() {
		fmt.Fprintf(c.Stdout, "%s = %s\n", strings.TrimSuffix(a.Name+"."+a.Resource, "."), qstat.VisibleText(a.Text()))
	}
	return 0
}

// printScript prints the script of a job, as it was submitted.
func printScript(c *frame.Invocation, j *pbsJob) int {
	id := pbsframe.IDText(j.GetId(), j.GetArray())
	_, large := j.ad.Str(roost.AttrScriptFile)
	script, has := j.ad.Str(roost.AttrScript)
	switch {
	case large:
		fmt.Fprintf(c.Stderr, "printjob: the script of %s is larger than %d KiB, and is not handed out\n", id,
			jobs.MaxInline>>10)
	case !has:
		fmt.Fprintf(c.Stderr, "printjob: %s has no script that you may see: it runs a command, or is somebody else's\n",
			id)
	default:
		fmt.Fprint(c.Stdout, script)
		return 0
	}
	return 1
}
