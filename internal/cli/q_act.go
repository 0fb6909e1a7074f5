package cli

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
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qholdCommand() *command {
	return &command{
		name: "qhold", group: groupPBS, summary: "hold jobs", synopsis: "[-h u|o|s|n] JOB…", rawArgs: true,
		maxOperands: -1, run: qhold,
		description: "Keeps jobs from starting until qrls lets them go on.",
		examples: []commandExample{
			{"qhold 123", "hold a job"},
			{"qhold -h u 123 124", "the same for two, with the kind of hold"},
		},
		flags: []ucli.Flag{shortFlag("h", "KIND",
			"the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qrlsCommand() *command {
	return &command{
		name: "qrls", group: groupPBS, summary: "release held jobs", synopsis: "[-h u|o|s|n] JOB…", rawArgs: true,
		maxOperands: -1, run: qrls,
		description: "Lets jobs go on that were held. What an administrator holds of yours, only an administrator " +
			"lets go on.",
		examples: []commandExample{
			{"qrls 123", "release a job"},
			{"qrls -h u 123 124", "the same for two, with the kind of hold"},
		},
		flags: []ucli.Flag{shortFlag("h", "KIND",
			"the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qhold(c *invocation) error { return c.holdTypesOf(wire.ActRequest_HOLD) }
func qrls(c *invocation) error  { return c.holdTypesOf(wire.ActRequest_RELEASE) }

func (c *invocation) holdTypesOf(v wire.ActRequest_Verb) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "h:")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	kinds := o.last('h')
	if strings.Trim(kinds, "uosnp") != "" || strings.Contains(kinds, "n") && len(kinds) > 1 {
		return c.pbsUsage("illegal -h value")
	}
	if kinds == "n" {
		v = wire.ActRequest_VERB_UNSPECIFIED
	}
	return c.actOnOperands(o, &wire.ActRequest{Verb: v, Reason: c.cmd.name, Again: true,
		Force: strings.ContainsAny(kinds, "os")}, false)
}

// actOnOperands does a verb to each operand by itself, in order; one that fails does not
// stop the rest, and the last error is the exit status.
func (c *invocation) actOnOperands(o pbsOptions, req *wire.ActRequest, lenient bool) error {
	if len(o.operands) == 0 {
		return c.pbsUsage("")
	}
	removed := map[string]bool{} // by this command: that it has ended is no mistake of who names it twice
	return c.eachOperand(o.operands, func(text, id string, s wire.ScheddClient) int {
		if req.GetVerb() == wire.ActRequest_VERB_UNSPECIFIED {
			return 0 // -h n asks for nothing
		}
		reply, err := c.actAtSchedd(s, req, id)
		task, _, _ := strings.Cut(id, ".")
		job, _, _ := strings.Cut(task, "[")
		code := c.printOperandResult(text, reply, err, lenient || removed[task] || removed[job])
		removed[task] = removed[task] || code == 0 && req.GetVerb() == wire.ActRequest_REMOVE
		return code
	})
}

// eachOperand does something to each operand by itself, in order, at the schedd that it
// is for; what fails with one does not stop the rest, and the last error is the exit
// status.
func (c *invocation) eachOperand(operands []string, do func(text, id string, s wire.ScheddClient) int) error {
	code := 0
	for _, text := range operands {
		text = strings.TrimSpace(text)
		id, ok := parsePBSID(text)
		if !ok {
			fmt.Fprintf(c.stderr, "%s: illegally formed job identifier: %s\n", c.cmd.name, qstat.VisibleText(text))
			code = 1
			continue
		}
		host := idHost(id)
		if at := operandHost(text); at != "" {
			id, host = id+"."+at, at
		}
		s, err := c.jobSchedd(host)
		if err != nil {
			return c.pbsFail(err)
		}
		if bad := do(text, id, s); bad != 0 {
			code = bad
		}
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// actAtSchedd asks a schedd to act on jobs of its own.
func (c *invocation) actAtSchedd(s wire.ScheddClient, req *wire.ActRequest,
	ids ...string) (reply *wire.ActReply, err error) {
	err = c.retry(submitTimeout, func(ctx context.Context, _ func()) (err error) {
		one := proto.CloneOf(req)
		one.Selection = &wire.Selection{Selectors: ids}
		reply, err = s.Act(ctx, one)
		return decodeError(err)
	})
	return reply, err
}

// printOperandResult says what went wrong with one operand, in PBS's words, and returns
// the exit status for it.
func (c *invocation) printOperandResult(text string, reply *wire.ActReply, err error, lenient bool) int {
	code := 0
	for _, r := range reply.GetResults() {
		if r.GetError() != "" {
			code = c.printOperandRefusal(text, r, lenient)
		}
	}
	switch {
	case err != nil:
		return c.printOperandError(text, err, lenient)
	case len(reply.GetResults()) == 0:
		return c.printOperandError(text, roost.NotFound, lenient)
	}
	return code
}

// pbsRefusals are the numbers and words that PBS has for what is wrong beside the kinds
// of errors.
var pbsRefusals = map[wire.ActReply_Refusal]struct {
	code int
	text string
}{
	wire.ActReply_UNKNOWN_SIGNAL: {pbsBadSignal, "Unknown/illegal signal name"},
	wire.ActReply_NOT_RERUNNABLE: {pbsNoRerun, "job is not rerunnable"},
	wire.ActReply_NO_SUBJOB:      {pbsInvalid, "Invalid request"},
	wire.ActReply_RUNS:           {pbsRuns, "Cannot modify attribute while job running "},
	wire.ActReply_PART:           {pbsInvalid, "Invalid request"},
	wire.ActReply_ENDED_SUBJOB:   {pbsEndedSubjob, "Request invalid for finished array subjob"},
}

// printOperandRefusal says why one operand was refused, and returns the exit status for
// it.
func (c *invocation) printOperandRefusal(text string, r *wire.ActReply_Result, lenient bool) int {
	text = c.fullOperand(text)
	known, ok := pbsRefusals[r.GetRefusal()]
	switch {
	case r.GetRefusal() == wire.ActReply_NO_SUBJOB && c.cmd.name != "qdel" && c.cmd.name != "qrerun":
		ok = false // these alone have other words for it than for a job that there is not
	case r.GetRefusal() == wire.ActReply_ENDED_SUBJOB && lenient:
		return 0
	}
	if ok {
		fmt.Fprintf(c.stderr, "%s: %s %s\n", c.cmd.name, known.text, text)
		return known.code
	}
	if code := c.printInvalidAlteration(r); code != 0 {
		return code
	}
	return c.printOperandError(text, &kindError{roost.ErrorKind(r.GetKind()), r.GetError()}, lenient)
}

// printOperandError says what is wrong with one operand, and returns the exit status for
// it.
func (c *invocation) printOperandError(text string, err error, lenient bool) int {
	code := pbsExitStatus(err)
	text = c.fullOperand(text)
	switch code {
	case pbsUnknownJob:
		fmt.Fprintf(c.stderr, "%s: %s %s\n", c.cmd.name, c.unknownJob(), text)
	case pbsFinished:
		if lenient {
			return 0
		}
		fmt.Fprintf(c.stderr, "%s: Job has finished %s\n", c.cmd.name, text)
	case pbsUnauthorized:
		fmt.Fprintf(c.stderr, "%s: Unauthorized Request %s\n", c.cmd.name, text)
		if errors.Is(decodeError(err), roost.Unauthenticated) { // it is another node's
			fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, errorText(err))
		}
	case pbsBadState:
		fmt.Fprintf(c.stderr, "%s: Request invalid for state of job %s\n", c.cmd.name, text)
	default:
		fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name,
			withSubject(text, strings.Join(strings.Fields(errorText(err)), " ")))
	}
	return code
}

func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
