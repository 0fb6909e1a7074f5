package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func qsigCommand() *command {
	return &command{
		name: "qsig", group: groupPBS, summary: "send running jobs a signal", synopsis: "[-s SIGNAL] JOB…",
		rawArgs: true, maxOperands: -1, run: qsig,
		description: "Sends a signal to all processes of running jobs, arrays (123[]), tasks of them (123[7]) and " +
			"ranges of those (123[1-5]). suspend freezes jobs where they are, and resume thaws them: that is " +
			"no signal, and a program cannot tell. A job that does not run gets none.",
		examples: []commandExample{
			{"qsig -s USR1 123", "send a job SIGUSR1"},
			{"qsig -s SIGKILL '123[7]'", "kill a task of an array, which counts as its failure"},
			{"qsig -s suspend 123", "freeze a job"},
			{"qsig -s resume 123", "let it run on"},
		},
		flags: []ucli.Flag{shortFlag("s", "SIGNAL",
			"a name with or without SIG, or a number; suspend or resume; without -s SIGTERM")},
	}
}

func qsig(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "s:")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	req := &wire.ActRequest{Verb: wire.ActRequest_SIGNAL, Reason: c.cmd.name, Signal: o.last('s')}
	switch {
	case req.Signal == "suspend" || req.Signal == "admin-suspend":
		req.Verb = wire.ActRequest_SUSPEND
	case req.Signal == "resume" || req.Signal == "admin-resume":
		req.Verb = wire.ActRequest_RESUME
	case req.Signal == "" && o.isSet('s'):
		return c.pbsUsage("illegal -s value")
	}
	return c.actOnOperands(o, req, false)
}
