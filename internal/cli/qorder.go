package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qorderCommand() *command {
	return &command{
		name: "qorder", group: groupPBS, summary: "let two jobs change places", synopsis: "JOB JOB", rawArgs: true,
		maxOperands: -1, run: qorder,
		description: "Lets two jobs, or arrays (123[]), that wait change their places: each starts where the other " +
			"would have, as far as their age decides that, and qstat lists it there. Jobs of two queues change these " +
			"too, if each suits the other's.",
		examples: []commandExample{
			{"qorder 123 124", "let 124 start before 123"},
			{"qorder '123[]' 125", "the same for an array and a job"},
		},
		flags: []ucli.Flag{},
	}
}

func qorder(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) != 2 {
		return c.pbsUsage("")
	}
	var ids, hosts [2]string
	for i, text := range o.operands {
		text = strings.TrimSpace(text)
		id, ok := parsePBSID(text)
		if !ok {
			fmt.Fprintf(c.stderr, "qorder: illegally formed job identifier: %s\n", qstat.VisibleText(text))
			return exitError(1)
		}
		if ids[i], hosts[i] = id, idHost(id); operandHost(text) != "" {
			ids[i], hosts[i] = id+"."+operandHost(text), operandHost(text)
		}
	}
	if hosts[0] != "" && hosts[1] != "" && !sameHost(hosts[0], hosts[1]) {
		fmt.Fprintln(c.stderr, "qorder: both jobs ids must specify the same server")
		return exitError(1)
	}
	s, err := c.jobSchedd(hosts[0])
	if err != nil {
		return c.pbsFail(err)
	}
	reply, err := c.actAtSchedd(s, &wire.ActRequest{Verb: wire.ActRequest_ORDER}, ids[:]...)
	if code := c.printOperandResult(o.operands[0]+" or "+o.operands[1], reply, err, false); code != 0 {
		return exitError(code)
	}
	return nil
}
