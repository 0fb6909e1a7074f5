package pbs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qrerunCommand() *frame.Command {
	return &frame.Command{
		Name: "qrerun", Group: frame.GroupPBS, Summary: "run running jobs again", Synopsis: "[-W force] JOB…",
		RawArgs:     true,
		MaxOperands: -1, Run: qrerun,
		Description: "Kills running jobs, arrays (123[]), tasks of them (123[7]) and ranges of those (123[1-5]), and " +
			"puts them back into the queue: they run again from the beginning, not from a checkpoint. A job that may " +
			"not be run twice (qsub -r n) is left alone.",
		Examples: []frame.Example{
			{Line: "qrerun 123", Description: "run a job again"},
			{Line: "qrerun '123[7]'", Description: "the same for a task of an array"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("W", "force", "an administrator's; it is taken and does the same")},
	}
}

func qrerun(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "W:")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if o.IsSet('W') && o.Last('W') != "force" {
		return pbsframe.PrintUsage(c, "illegal -W value")
	}
	return actOnOperands(c, o, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RERUN, Reason: c.Command.Name,
		Force: o.IsSet('W')},
		false)
}
