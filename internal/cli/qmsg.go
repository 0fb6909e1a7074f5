package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func qmsgCommand() *command {
	return &command{
		name: "qmsg", group: groupPBS, summary: "write a line into the output of running jobs",
		synopsis: "[-E] [-O] STRING JOB…", rawArgs: true, maxOperands: -1, run: qmsg,
		description: "Writes a string and the end of a line behind what running jobs, arrays (123[]), or tasks of " +
			"them (123[7]) have written to standard error so far, or to standard output, or to both. A job that does " +
			"not run gets none.",
		examples: []commandExample{
			{"qmsg 'the file server was away from 9:10 to 9:20' 123", "leave a note in the standard error of a job"},
			{"qmsg -O checked 123 124", "the same for two, in their standard output"},
		},
		flags: []ucli.Flag{
			shortFlag("E", "", "into standard error, as without options"),
			shortFlag("O", "", "into standard output"),
		},
	}
}

func qmsg(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "EO")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) < 2 {
		return c.pbsUsage("")
	}
	req := &wire.ActRequest{Verb: wire.ActRequest_MESSAGE, Message: []byte(o.operands[0]), Out: o.isSet('O'),
		Err: o.isSet('E') || !o.isSet('O')}
	o.operands = o.operands[1:]
	return c.actOnOperands(o, req, false)
}
