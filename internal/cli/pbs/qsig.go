package pbs

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qsigCommand() *frame.Command {
	return &frame.Command{
		Name: "qsig", Group: frame.GroupPBS, Summary: "send running jobs a signal", Synopsis: "[-s SIGNAL] JOB…",
		RawArgs: true, MaxOperands: -1, Run: qsig,
		Description: "Sends a signal to all processes of running jobs, arrays (123[]), tasks of them (123[7]) and " +
			"ranges of those (123[1-5]). suspend freezes jobs where they are, and resume thaws them: that is " +
			"no signal, and a program cannot tell. A job that does not run gets none.",
		Examples: []frame.Example{
			{Line: "qsig -s USR1 123", Description: "send a job SIGUSR1"},
			{Line: "qsig -s SIGKILL '123[7]'", Description: "kill a task of an array, which counts as its failure"},
			{Line: "qsig -s suspend 123", Description: "freeze a job"},
			{Line: "qsig -s resume 123", Description: "let it run on"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("s", "SIGNAL",
			"a name with or without SIG, or a number; suspend or resume; without -s SIGTERM")},
	}
}

func qsig(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "s:")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	req := &scheddapi.ActRequest{Verb: scheddapi.ActRequest_SIGNAL, Reason: c.Command.Name, Signal: o.Last('s')}
	switch {
	case req.Signal == "suspend" || req.Signal == "admin-suspend":
		req.Verb = scheddapi.ActRequest_SUSPEND
	case req.Signal == "resume" || req.Signal == "admin-resume":
		req.Verb = scheddapi.ActRequest_RESUME
	case req.Signal == "" && o.IsSet('s'):
		return pbsframe.PrintUsage(c, "illegal -s value")
	}
	return actOnOperands(c, o, req, false)
}
