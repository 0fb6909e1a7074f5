package cli

import (
	"cmp"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
)

func qmoveCommand() *command {
	return &command{
		name: "qmove", group: groupPBS, summary: "move jobs to another queue", synopsis: "DESTINATION JOB…",
		rawArgs: true, maxOperands: -1, run: qmove,
		description: "Moves jobs, or whole arrays (123[]), that wait to another queue of the node where they were " +
			"submitted: QUEUE, QUEUE@NODE, or @NODE for its default queue. A reservation is a queue here. What the " +
			"queue before has given a job it loses, and the new queue gives it what it does not say.",
		examples: []commandExample{
			{"qmove long 123", "move a job to the queue long"},
			{"qmove R12 123", "move a job into a reservation"},
			{"qmove batch $(qselect -u ann -q short -s Q)", "move all that wait in another"},
		},
		flags: []ucli.Flag{},
	}
}

func qmove(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) < 2 {
		return c.pbsUsage("")
	}
	queue, server, ok := qsub.ParseDestination(o.operands[0])
	if !ok {
		fmt.Fprintf(c.stderr, "qmove: illegally formed destination: %s\n", o.operands[0])
		return exitError(2)
	}
	return c.eachOperand(o.operands[1:], func(text, id string, s wire.ScheddClient) int {
		if own := cmp.Or(idHost(id), c.defaultServer(), config.HostName()); server != "" && !sameHost(server, own) {
			fmt.Fprintf(c.stderr, "qmove: No support for requested service %s: a job stays at the node where it was "+
				"submitted, %s; submit it on %s\n", text, own, server)
			return pbsNoSupport
		}
		reply, err := c.actAtSchedd(s, &wire.ActRequest{Verb: wire.ActRequest_MOVE, Queue: queue}, id)
		return c.printOperandResult(text, reply, err, false)
	})
}
