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
	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qholdCommand() *command {
	return &command{
		name: "qhold", group: groupPBS, brief: "hold jobs", args: "[-h u|o|s|n] JOB…", raw: true, most: -1, do: qhold,
		about: "Keeps jobs from starting until qrls lets them go on.",
		examples: []example{
			{"qhold 123", "hold a job"},
			{"qhold -h u 123 124", "the same for two, with the kind of hold"},
		},
		flags: []ucli.Flag{short("h", "KIND", "the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qrlsCommand() *command {
	return &command{
		name: "qrls", group: groupPBS, brief: "release held jobs", args: "[-h u|o|s|n] JOB…", raw: true, most: -1, do: qrls,
		about: "Lets jobs go on that were held. What an administrator holds of yours, only an administrator lets go on.",
		examples: []example{
			{"qrls 123", "release a job"},
			{"qrls -h u 123 124", "the same for two, with the kind of hold"},
		},
		flags: []ucli.Flag{short("h", "KIND", "the kind of hold: u (the default), or o or s, which only an administrator sets and releases; n for none")},
	}
}

func qhold(c *call) error { return c.holds(wire.ActRequest_HOLD) }
func qrls(c *call) error  { return c.holds(wire.ActRequest_RELEASE) }

func (c *call) holds(v wire.ActRequest_Verb) error {
	if c.asksVersion() {
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
	return c.pbsAct(o, &wire.ActRequest{Verb: v, Reason: c.cmd.name, Again: true, Force: strings.ContainsAny(kinds, "os")}, false)
}

// pbsAct does a verb to each operand by itself, in order; one that fails does not stop the rest, and the last error is the exit status.
func (c *call) pbsAct(o options, req *wire.ActRequest, lenient bool) error {
	if len(o.operands) == 0 {
		return c.pbsUsage("")
	}
	removed := map[string]bool{} // by this command: that it has ended is no mistake of who names it twice
	return c.pbsEach(o.operands, func(text, id string, s wire.ScheddClient) int {
		if req.GetVerb() == wire.ActRequest_VERB_UNSPECIFIED {
			return 0 // -h n asks for nothing
		}
		reply, err := c.actOn(s, req, id)
		task, _, _ := strings.Cut(id, ".")
		job, _, _ := strings.Cut(task, "[")
		code := c.pbsResult(text, reply, err, lenient || removed[task] || removed[job])
		removed[task] = removed[task] || code == 0 && req.GetVerb() == wire.ActRequest_REMOVE
		return code
	})
}

// pbsEach does something to each operand by itself, in order, at the schedd that it is for; what fails with one does not stop the rest, and the last error is
// the exit status.
func (c *call) pbsEach(operands []string, do func(text, id string, s wire.ScheddClient) int) error {
	code := 0
	for _, text := range operands {
		text = strings.TrimSpace(text)
		id, ok := pbsID(text)
		if !ok {
			fmt.Fprintf(c.stderr, "%s: illegally formed job identifier: %s\n", c.cmd.name, qstat.Visible(text))
			code = 1
			continue
		}
		host := idHost(id)
		if at := pbsHost(text); at != "" {
			id, host = id+"."+at, at
		}
		s, err := c.scheddOf(host)
		if err != nil {
			return c.pbsFail(err)
		}
		if bad := do(text, id, s); bad != 0 {
			code = bad
		}
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}

// actOn asks a schedd to act on jobs of its own.
func (c *call) actOn(s wire.ScheddClient, req *wire.ActRequest, ids ...string) (reply *wire.ActReply, err error) {
	err = c.persist(submitPatience, func(ctx context.Context, _ func()) (err error) {
		one := proto.CloneOf(req)
		one.Selection = &wire.Selection{Selectors: ids}
		reply, err = s.Act(ctx, one)
		return fromWire(err)
	})
	return reply, err
}

// pbsResult says what went wrong with one operand, in PBS's words, and returns the exit status for it.
func (c *call) pbsResult(text string, reply *wire.ActReply, err error, lenient bool) int {
	code := 0
	for _, r := range reply.GetResults() {
		if r.GetError() != "" {
			code = c.pbsRefused(text, r, lenient)
		}
	}
	switch {
	case err != nil:
		return c.pbsSay(text, err, lenient)
	case len(reply.GetResults()) == 0:
		return c.pbsSay(text, roost.NotFound, lenient)
	}
	return code
}

// pbsRefusals are the numbers and words that PBS has for what is wrong beside the kinds of errors.
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

// pbsRefused says why one operand was refused, and returns the exit status for it.
func (c *call) pbsRefused(text string, r *wire.ActReply_Result, lenient bool) int {
	text = c.wholeID(text)
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
	if code := c.pbsUnfit(r); code != 0 {
		return code
	}
	return c.pbsSay(text, &plain{roost.Kind(r.GetKind()), r.GetError()}, lenient)
}

// pbsSay says what is wrong with one operand, and returns the exit status for it.
func (c *call) pbsSay(text string, err error, lenient bool) int {
	code := pbsCode(err)
	text = c.wholeID(text)
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
		if errors.Is(fromWire(err), roost.Unauthenticated) { // it is another node's
			fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, message(err))
		}
	case pbsBadState:
		fmt.Fprintf(c.stderr, "%s: Request invalid for state of job %s\n", c.cmd.name, text)
	default:
		fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, within(text, strings.Join(strings.Fields(message(err)), " ")))
	}
	return code
}

func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
