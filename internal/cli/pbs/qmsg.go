package pbs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
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
			shortFlag("E", "", "into standard error, as without options"),
			shortFlag("O", "", "into standard output"),
		},
	}
}

func qmsg(c *frame.Invocation) error {
	if answersVersion(c) {
		return nil
	}
	o, err := getopt(c.Args, "EO")
	if err != nil {
		return pbsUsage(c, err.Error())
	}
	if len(o.operands) < 2 {
		return pbsUsage(c, "")
	}
	req := &wire.ActRequest{Verb: wire.ActRequest_MESSAGE, Message: []byte(o.operands[0]), Out: o.isSet('O'),
		Err: o.isSet('E') || !o.isSet('O')}
	o.operands = o.operands[1:]
	return actOnOperands(c, o, req, false)
}
