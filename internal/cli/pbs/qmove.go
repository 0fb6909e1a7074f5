package pbs

import (
	"cmp"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qmoveCommand() *frame.Command {
	return &frame.Command{
		Name: "qmove", Group: frame.GroupPBS, Summary: "move jobs to another queue", Synopsis: "DESTINATION JOB…",
		RawArgs: true, MaxOperands: -1, Run: qmove,
		Description: "Moves jobs, or whole arrays (123[]), that wait to another queue of the node where they were " +
			"submitted: QUEUE, QUEUE@NODE, or @NODE for its default queue. A reservation is a queue here. What the " +
			"queue before has given a job it loses, and the new queue gives it what it does not say.",
		Examples: []frame.Example{
			{Line: "qmove long 123", Description: "move a job to the queue long"},
			{Line: "qmove R12 123", Description: "move a job into a reservation"},
			{Line: "qmove batch $(qselect -u ann -q short -s Q)", Description: "move all that wait in another"},
		},
		Flags: []ucli.Flag{},
	}
}

func qmove(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) < 2 {
		return pbsframe.PrintUsage(c, "")
	}
	queue, server, ok := qsub.ParseDestination(o.Operands[0])
	if !ok {
		fmt.Fprintf(c.Stderr, "qmove: illegally formed destination: %s\n", o.Operands[0])
		return frame.ExitError(2)
	}
	return eachOperand(c, o.Operands[1:], func(text, id string, s *scheddapi.ScheddClient) int {
		if own := cmp.Or(frame.IDHost(id), c.DefaultServer(), pooldir.HostName()); server != "" &&
			!pbsframe.SameHost(server, own) {
			fmt.Fprintf(c.Stderr, "qmove: No support for requested service %s: a job stays at the node where it was "+
				"submitted, %s; submit it on %s\n", text, own, server)
			return pbsframe.NoSupport
		}
		reply, err := actAtSchedd(c, s, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_MOVE, Queue: queue}, id)
		return printOperandResult(c, text, reply, err, false)
	})
}
