package pbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qholdCommand() *frame.Command {
	return &frame.Command{
		Name: "qhold", Group: frame.GroupPBS, Summary: "hold jobs", Synopsis: "[-h u|o|s|n] JOB…", RawArgs: true,
		MaxOperands: -1, Run: qhold,
		Description: "Keeps jobs from starting until qrls lets them go on.",
		Examples: []frame.Example{
			{Line: "qhold 123", Description: "hold a job"},
			{Line: "qhold -h u 123 124", Description: "the same for two, with the kind of hold"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("h", "KIND",
			"the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qrlsCommand() *frame.Command {
	return &frame.Command{
		Name: "qrls", Group: frame.GroupPBS, Summary: "release held jobs", Synopsis: "[-h u|o|s|n] JOB…", RawArgs: true,
		MaxOperands: -1, Run: qrls,
		Description: "Lets jobs go on that were held. What an administrator holds of yours, only an administrator " +
			"lets go on.",
		Examples: []frame.Example{
			{Line: "qrls 123", Description: "release a job"},
			{Line: "qrls -h u 123 124", Description: "the same for two, with the kind of hold"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("h", "KIND",
			"the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qhold(c *frame.Invocation) error { return holdTypesOf(c, scheddapi.ActRequest_HOLD) }
func qrls(c *frame.Invocation) error  { return holdTypesOf(c, scheddapi.ActRequest_RELEASE) }

func holdTypesOf(c *frame.Invocation, v scheddapi.ActRequest_Verb) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "h:")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	kinds := o.Last('h')
	if strings.Trim(kinds, "uosnp") != "" || strings.Contains(kinds, "n") && len(kinds) > 1 {
		return pbsframe.PrintUsage(c, "illegal -h value")
	}
	if kinds == "n" {
		v = scheddapi.ActRequest_VERB_UNSPECIFIED
	}
	return actOnOperands(c, o, &scheddapi.ActRequest{Verb: v, Reason: c.Command.Name, Again: true,
		Force: strings.ContainsAny(kinds, "os")}, false)
}

// actOnOperands does a verb to each operand, in order, and returns the last error as the
// exit status. A failure does not stop the rest.
func actOnOperands(c *frame.Invocation, o pbsframe.Options, req *scheddapi.ActRequest, lenient bool) error {
	if len(o.Operands) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	removed := map[string]bool{} // by this command: that it has ended is no mistake of who names it twice
	return eachOperand(c, o.Operands, func(text, id string, s *scheddapi.ScheddClient) int {
		if req.GetVerb() == scheddapi.ActRequest_VERB_UNSPECIFIED {
			return 0 // -h n asks for nothing
		}
		reply, err := actAtSchedd(c, s, req, id)
		task, _, _ := strings.Cut(id, ".")
		job, _, _ := strings.Cut(task, "[")
		code := printOperandResult(c, text, reply, err, lenient || removed[task] || removed[job])
		removed[task] = removed[task] || code == 0 && req.GetVerb() == scheddapi.ActRequest_REMOVE
		return code
	})
}

// eachOperand calls a function for each operand, in order, with the schedd that the
// operand names. A failure does not stop the rest, and the last error is the exit status.
func eachOperand(c *frame.Invocation, operands []string, do func(text, id string,
	s *scheddapi.ScheddClient) int) error {
	code := 0
	for _, text := range operands {
		text = strings.TrimSpace(text)
		id, ok := pbsframe.ParseID(text)
		if !ok {
			fmt.Fprintf(c.Stderr, "%s: illegally formed job identifier: %s\n", c.Command.Name, qstat.VisibleText(text))
			code = 1
			continue
		}
		host := frame.IDHost(id)
		if at := pbsframe.OperandHost(text); at != "" {
			id, host = id+"."+at, at
		}
		s, err := c.JobSchedd(host)
		if err != nil {
			return pbsframe.Fail(c, err)
		}
		if bad := do(text, id, s); bad != 0 {
			code = bad
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// actAtSchedd asks a schedd to act on jobs of its own.
func actAtSchedd(c *frame.Invocation, s *scheddapi.ScheddClient, req *scheddapi.ActRequest,
	ids ...string) (reply *scheddapi.ActReply, err error) {
	err = c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) (err error) {
		one := proto.CloneOf(req)
		one.Selection = &scheddapi.Selection{Selectors: ids}
		reply, err = s.Act(ctx, one)
		return frame.DecodeError(err)
	})
	return reply, err
}

// printOperandResult says what went wrong with one operand, in PBS's words, and returns
// the exit status for it.
func printOperandResult(c *frame.Invocation, text string, reply *scheddapi.ActReply, err error, lenient bool) int {
	code := 0
	for _, r := range reply.GetResults() {
		if r.GetError() != "" {
			code = printOperandRefusal(c, text, r, lenient)
		}
	}
	switch {
	case err != nil:
		return printOperandError(c, text, err, lenient)
	case len(reply.GetResults()) == 0:
		return printOperandError(c, text, roost.NotFound, lenient)
	}
	return code
}

// pbsRefusals are the numbers and words that PBS has for what is wrong beside the kinds
// of errors.
var pbsRefusals = map[scheddapi.ActReply_Refusal]struct {
	code int
	text string
}{
	scheddapi.ActReply_UNKNOWN_SIGNAL: {pbsframe.BadSignal, "Unknown/illegal signal name"},
	scheddapi.ActReply_NOT_RERUNNABLE: {pbsframe.NoRerun, "job is not rerunnable"},
	scheddapi.ActReply_NO_SUBJOB:      {pbsframe.InvalidRequest, "Invalid request"},
	scheddapi.ActReply_RUNS:           {pbsframe.RunningJob, "Cannot modify attribute while job running "},
	scheddapi.ActReply_PART:           {pbsframe.InvalidRequest, "Invalid request"},
	scheddapi.ActReply_ENDED_SUBJOB:   {pbsframe.EndedSubjob, "Request invalid for finished array subjob"},
}

// printOperandRefusal says why one operand was refused, and returns the exit status for
// it.
func printOperandRefusal(c *frame.Invocation, text string, r *scheddapi.ActReply_Result, lenient bool) int {
	text = pbsframe.FullOperand(c, text)
	known, ok := pbsRefusals[r.GetRefusal()]
	switch {
	case r.GetRefusal() == scheddapi.ActReply_NO_SUBJOB && c.Command.Name != "qdel" && c.Command.Name != "qrerun":
		ok = false // these alone have other words for it than for a job that there is not
	case r.GetRefusal() == scheddapi.ActReply_ENDED_SUBJOB && lenient:
		return 0
	}
	if ok {
		fmt.Fprintf(c.Stderr, "%s: %s %s\n", c.Command.Name, known.text, text)
		return known.code
	}
	if code := printInvalidAlteration(c, r); code != 0 {
		return code
	}
	return printOperandError(c, text, &frame.KindError{Kind: roost.ErrorKind(r.GetKind()), Text: r.GetError()}, lenient)
}

// printOperandError says what is wrong with one operand, and returns the exit status for
// it.
func printOperandError(c *frame.Invocation, text string, err error, lenient bool) int {
	code := pbsframe.ExitStatus(err)
	text = pbsframe.FullOperand(c, text)
	switch code {
	case pbsframe.UnknownJob:
		fmt.Fprintf(c.Stderr, "%s: %s %s\n", c.Command.Name, pbsframe.UnknownJobText(c), text)
	case pbsframe.FinishedJob:
		if lenient {
			return 0
		}
		fmt.Fprintf(c.Stderr, "%s: Job has finished %s\n", c.Command.Name, text)
	case pbsframe.Unauthorized:
		fmt.Fprintf(c.Stderr, "%s: Unauthorized Request %s\n", c.Command.Name, text)
		if errors.Is(frame.DecodeError(err), roost.Unauthenticated) { // it is another node's
			fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, frame.ErrorText(err))
		}
	case pbsframe.BadState:
		fmt.Fprintf(c.Stderr, "%s: Request invalid for state of job %s\n", c.Command.Name, text)
	default:
		fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name,
			jobs.WithSubject(text, strings.Join(strings.Fields(frame.ErrorText(err)), " ")))
	}
	return code
}

func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
