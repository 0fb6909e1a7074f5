package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func qrerunCommand() *command {
	return &command{
		name: "qrerun", group: groupPBS, summary: "run running jobs again", synopsis: "[-W force] JOB…", rawArgs: true,
		maxOperands: -1, run: qrerun,
		description: "Kills running jobs, arrays (123[]), tasks of them (123[7]) and ranges of those (123[1-5]), and " +
			"puts them back into the queue: they run again from the beginning, not from a checkpoint. A job that may " +
			"not be run twice (qsub -r n) is left alone.",
		examples: []commandExample{
			{"qrerun 123", "run a job again"},
			{"qrerun '123[7]'", "the same for a task of an array"},
		},
		flags: []ucli.Flag{shortFlag("W", "force", "an administrator's; it is taken and does the same")},
	}
}

func qrerun(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "W:")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if o.isSet('W') && o.last('W') != "force" {
		return c.pbsUsage("illegal -W value")
	}
	return c.actOnOperands(o, &wire.ActRequest{Verb: wire.ActRequest_RERUN, Reason: c.cmd.name, Force: o.isSet('W')},
		false)
}
