package pbs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qmsgCommand() *frame.Command {
	return &frame.Command{
		Name: "qmsg", Group: frame.GroupPBS, Summary: "write a line into the output of running jobs",
		Synopsis: "[-E] [-O] STRING JOB…", RawArgs: true, MaxOperands: -1, Run: qmsg,
		Description: "Writes a string and the end of a line behind what running jobs, arrays (123[]), or tasks of " +
			"them (123[7]) have written to standard error so far, or to standard output, or to both. A job that does " +
			"not run gets none.",
		Examples: []frame.Example{
			{Line: "qmsg 'the file server was away from 9:10 to 9:20' 123",
				Description: "leave a note in the standard error of a job"},
			{Line: "qmsg -O checked 123 124", Description: "the same for two, in their standard output"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("E", "", "into standard error, as without options"),
			pbsframe.ShortFlag("O", "", "into standard output"),
		},
	}
}

func qmsg(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "EO")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) < 2 {
		return pbsframe.PrintUsage(c, "")
	}
	req := &scheddapi.ActRequest{Verb: scheddapi.ActRequest_MESSAGE, Message: []byte(o.Operands[0]), Out: o.IsSet('O'),
		Err: o.IsSet('E') || !o.IsSet('O')}
	o.Operands = o.Operands[1:]
	return actOnOperands(c, o, req, false)
}
