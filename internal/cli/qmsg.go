package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func qmsgCommand() *command {
	return &command{
		name: "qmsg", group: groupPBS, brief: "write a line into the output of running jobs", args: "[-E] [-O] STRING JOB…", raw: true, most: -1, do: qmsg,
		about: "Writes a string and the end of a line behind what running jobs, arrays (123[]), or tasks of them (123[7]) have written to standard error so far, or to standard output, or to both. A job that does not run gets none.",
		examples: []example{
			{"qmsg 'the file server was away from 9:10 to 9:20' 123", "leave a note in the standard error of a job"},
			{"qmsg -O checked 123 124", "the same for two, in their standard output"},
		},
		flags: []ucli.Flag{
			short("E", "", "into standard error, as without options"),
			short("O", "", "into standard output"),
		},
	}
}

func qmsg(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "EO")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) < 2 {
		return c.pbsUsage("")
	}
	req := &wire.ActRequest{Verb: wire.ActRequest_MESSAGE, Message: []byte(o.operands[0]), Out: o.has('O'), Err: o.has('E') || !o.has('O')}
	o.operands = o.operands[1:]
	return c.pbsAct(o, req, false)
}
