package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func qrerunCommand() *command {
	return &command{
		name: "qrerun", group: groupPBS, brief: "run running jobs again", args: "[-W force] JOB…", raw: true, most: -1, do: qrerun,
		about: "Kills running jobs, arrays (123[]), tasks of them (123[7]) and ranges of those (123[1-5]), and puts them back into the queue: they run again from the beginning, not from a checkpoint. A job that may not be run twice (qsub -r n) is left alone.",
		examples: []example{
			{"qrerun 123", "run a job again"},
			{"qrerun '123[7]'", "the same for a task of an array"},
		},
		flags: []ucli.Flag{short("W", "force", "an administrator's; it is taken and does the same")},
	}
}

func qrerun(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "W:")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if o.has('W') && o.last('W') != "force" {
		return c.pbsUsage("illegal -W value")
	}
	return c.pbsAct(o, &wire.ActRequest{Verb: wire.ActRequest_RERUN, Reason: c.cmd.name, Force: o.has('W')}, false)
}
