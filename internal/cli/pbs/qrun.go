package pbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qrunCommand() *frame.Command {
	return &frame.Command{
		Name: "qrun", Group: frame.GroupPBS, Summary: "start jobs now, out of turn",
		Synopsis: "[-a] [-H HOST[+HOST…]] JOB…",
		RawArgs:  true, MaxOperands: -1, Run: qrun,
		Description: "Has jobs that wait start now, before all others: past fair share, bands, quotas and limits on " +
			"what runs, but not past what machines have, nor past their owners. It is for who administers jobs. It " +
			"waits until each runs, or says why no machine can take it; then the job takes its turn again.",
		Examples: []frame.Example{
			{Line: "qrun 123", Description: "start a job now, and wait until it runs"},
			{Line: "qrun -a -H n1+n2 '123[1-5]'",
				Description: "ask for tasks of an array to start now on n1 or n2, and wait for nothing"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("H", "HOSTS", "only on these machines, with + between them"),
			pbsframe.ShortFlag("a", "", "return when it is asked for, before the job starts"),
		},
	}
}

// runPatience is for how long qrun waits for an answer of the negotiator.
const runPatience = time.Minute

// pbsUnavailable is what qrun ends with where no machine can take a job now
// (PBSE_RESCUNAV).
const pbsUnavailable = 196

func qrun(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "H:a")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	req := &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RUN, Reason: c.Command.Name}
	if o.IsSet('H') {
		var why string
		if req.Nodes, why = runHosts(o.Last('H')); req.Nodes == nil {
			return pbsframe.PrintUsage(c, "illegal -H value"+why)
		}
	}
	return eachOperand(c, o.Operands, func(text, id string, s *scheddapi.ScheddClient) int {
		reply, err := actAtSchedd(c, s, req, id)
		if code := printOperandResult(c, text, reply, err, false); code != 0 || o.IsSet('a') {
			return code
		}
		return awaitRun(c, text, id, s)
	})
}

// runHosts reads the machines of -H. Where it returns none, why may say what is wrong
// with them.
func runHosts(value string) (hosts []string, why string) {
	if value == "-" {
		return nil, ": a job has no machines of before"
	}
	value = strings.NewReplacer("(", "", ")", "").Replace(value)
	for _, host := range strings.Split(value, "+") {
		switch host = strings.TrimSpace(host); {
		case host == "":
			return nil, ""
		case strings.ContainsAny(host, ":="):
			return nil, ": name machines alone; what the job has of them is what it asks for, which qalter -l changes"
		case strings.ContainsFunc(host, pbsframe.IsInvalidID):
			return nil, ""
		}
		hosts = append(hosts, host)
	}
	return hosts, ""
}

// awaitRun waits until a job that was asked to run now does, or it is known why it
// cannot.
func awaitRun(c *frame.Invocation, text, id string, s *scheddapi.ScheddClient) int {
	ctx, cancel := context.WithTimeout(c.Context, runPatience)
	defer cancel()
	waiting := *c
	waiting.Context = ctx
	var last *scheddapi.JobStatus
	err := waiting.Retry(frame.SubmitTimeout, func(ctx context.Context, alive func()) error {
		stream, err := s.Watch(ctx, &scheddapi.WatchRequest{Selection: &scheddapi.Selection{Selectors: []string{id}}})
		for err == nil {
			var e *scheddapi.WatchEvent
			if e, err = stream.Recv(); err == nil {
				alive()
				if last = e.GetStatus(); last.GetRunNow().GetPending() == 0 {
					return nil
				}
			}
		}
		return err
	})
	text = pbsframe.FullOperand(c, text)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fmt.Fprintf(c.Stderr, "%s: no answer within %v, and it is asked for still: %s: see roost why %s\n",
			c.Command.Name,
			runPatience, text, id)
		return pbsframe.SystemError
	case err != nil:
		return printOperandError(c, text, err, false)
	case last.GetRunNow().GetDenied() != "":
		fmt.Fprintf(c.Stderr, "%s: Resources temporarily unavailable %s: %s\n", c.Command.Name, text,
			document.PrintableText(last.GetRunNow().GetDenied()))
		return pbsUnavailable
	case last.GetCounts()[roost.Held.String()] > 0 && !last.GetArray() || last.GetState() == roost.Held.String():
		return printOperandError(c, text, roost.Conflict, false)
	}
	return 0
}
