package pbs

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qorderCommand() *frame.Command {
	return &frame.Command{
		Name: "qorder", Group: frame.GroupPBS, Summary: "let two jobs change places", Synopsis: "JOB JOB",
		RawArgs:     true,
		MaxOperands: -1, Run: qorder,
		Description: "Lets two jobs, or arrays (123[]), that wait change their places: each starts where the other " +
			"would have, as far as their age decides that, and qstat lists it there. Jobs of two queues change these " +
			"too, if each suits the other's.",
		Examples: []frame.Example{
			{Line: "qorder 123 124", Description: "let 124 start before 123"},
			{Line: "qorder '123[]' 125", Description: "the same for an array and a job"},
		},
		Flags: []ucli.Flag{},
	}
}

func qorder(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) != 2 {
		return pbsframe.PrintUsage(c, "")
	}
	var ids, hosts [2]string
	for i, text := range o.Operands {
		text = strings.TrimSpace(text)
		id, ok := pbsframe.ParseID(text)
		if !ok {
			fmt.Fprintf(c.Stderr, "qorder: illegally formed job identifier: %s\n", qstat.VisibleText(text))
			return frame.ExitError(1)
		}
		if ids[i], hosts[i] = id, frame.IDHost(id); pbsframe.OperandHost(text) != "" {
			ids[i], hosts[i] = id+"."+pbsframe.OperandHost(text), pbsframe.OperandHost(text)
		}
	}
	if hosts[0] != "" && hosts[1] != "" && !pbsframe.SameHost(hosts[0], hosts[1]) {
		fmt.Fprintln(c.Stderr, "qorder: both jobs ids must specify the same server")
		return frame.ExitError(1)
	}
	s, err := c.JobSchedd(hosts[0])
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	reply, err := actAtSchedd(c, s, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_ORDER}, ids[:]...)
	if code := printOperandResult(c, o.Operands[0]+" or "+o.Operands[1], reply, err, false); code != 0 {
		return frame.ExitError(code)
	}
	return nil
}
