package submission

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/slurm/cluster"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func scancelCommand() *frame.Command {
	return &frame.Command{
		Name: "scancel", Group: frame.GroupSlurm, Summary: "cancel jobs, or send them a signal",
		Synopsis: "[OPTION…] [JOB…]", RawArgs: true, MaxOperands: -1, Run: runScancel, LinkProgram: frame.LocalProgram,
		Description: "Cancels jobs, tasks of arrays (123_4, 123_[1-4]), steps (123.0), or all jobs that the options " +
			"choose. A job that has ended, or that is not there, is no error.",
		Examples: []frame.Example{
			{Line: "scancel 123", Description: "cancel a job"},
			{Line: "scancel --me -t PENDING", Description: "all jobs of yours that wait"},
			{Line: "scancel -s USR1 123", Description: "send a signal"},
		},
		Flags: scancelFlags(),
	}
}

func scancelOptions() []getopt.Option {
	const required = getopt.Required
	return []getopt.Option{
		{Name: "account", Letter: 'A', Argument: required}, {Name: "batch", Letter: 'b'}, {Name: "ctld"},
		{Name: "cron"}, {Name: "full", Letter: 'f'}, {Name: "hurry", Letter: 'H'}, {Name: "interactive", Letter: 'i'},
		{Name: "clusters", Letter: 'M', Argument: required}, {Name: "me"},
		{Name: "name", Letter: 'n', Argument: required}, {Name: "jobname", As: "name", Argument: required},
		{Name: "partition", Letter: 'p', Argument: required}, {Name: "quiet", Letter: 'Q'},
		{Name: "qos", Letter: 'q', Argument: required}, {Name: "reservation", Letter: 'R', Argument: required},
		{Name: "signal", Letter: 's', Argument: required}, {Name: "state", Letter: 't', Argument: required},
		{Name: "user", Letter: 'u', Argument: required}, {Name: "verbose", Letter: 'v'},
		{Name: "nodelist", Letter: 'w', Argument: required}, {Name: "wckey", Argument: required},
		{Name: "help"}, {Name: "usage"}, {Name: "version", Letter: 'V'}, {Name: "sibling", Argument: required},
	}
}

// cancellation is a run of scancel.
type cancellation struct {
	c      *frame.Invocation
	given  []getopt.Given
	status int
}

func (r *cancellation) value(name string) string { v, _ := getopt.Last(r.given, name); return v }
func (r *cancellation) has(name string) bool     { _, ok := getopt.Last(r.given, name); return ok }

func runScancel(c *frame.Invocation) error {
	table := getopt.Table{Options: scancelOptions()}
	given, operands, err := table.Parse(c.Args)
	if err != nil {
		fmt.Fprint(c.Stderr, getopt.Message("scancel", err))
		return frame.ExitError(1)
	}
	r := &cancellation{c: c, given: given}
	switch {
	case r.has("version"):
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	case r.has("help"), r.has("usage"):
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	}
	if err := cluster.Choose(c, "scancel", r.value("clusters")); err != nil {
		return err
	}
	req, err := r.request()
	if err != nil { // without the name of the command, as Slurm prints it
		fmt.Fprintln(c.Stderr, document.PrintableText(err.Error()))
		return frame.ExitError(1)
	}
	if err := r.checkFilters(); err != nil {
		return err
	}
	isFiltered := slices.ContainsFunc([]string{"account", "me", "name", "partition", "qos", "reservation", "state",
		"user", "nodelist", "wckey"}, r.has)
	if len(operands) == 0 && !isFiltered {
		fmt.Fprint(c.Stderr, "scancel: error: No job identification provided\n")
		return frame.ExitError(1)
	}
	if c.FallbackProgram != "" && slices.ContainsFunc(operands, namesStep) {
		return c.ExecSibling(c.FallbackProgram) // a step is reached by a stream
	}
	operands, isStep := r.actOnSteps(req, operands)
	if isStep && len(operands) == 0 {
		return r.end()
	}
	selectors := r.selectors(operands)
	if isFiltered {
		if selectors, err = r.filter(selectors, len(operands) > 0); err != nil {
			return failWith(c, err)
		}
	}
	r.act(req, selectors)
	return r.end()
}

// end is the exit status of the command.
func (r *cancellation) end() error {
	if r.status != 0 {
		return frame.ExitError(r.status)
	}
	return nil
}

// namesStep reports whether a word of the command line names a step.
func namesStep(text string) bool {
	words := strings.Fields(strings.ReplaceAll(joinBrackets(text), ",", " "))
	return slices.ContainsFunc(words, func(word string) bool {
		_, ok := parseStepName(word)
		return ok
	})
}

// actOnSteps does to the steps that are named what is to be done. It returns the names of
// jobs, and whether there were steps.
func (r *cancellation) actOnSteps(req *scheddapi.ActRequest, operands []string) (jobs []string, isStep bool) {
	for _, text := range operands {
		for word := range strings.FieldsSeq(strings.ReplaceAll(joinBrackets(text), ",", " ")) {
			s, ok := parseStepName(word)
			if !ok {
				jobs = append(jobs, strings.ReplaceAll(word, ";", ","))
				continue
			}
			isStep = true
			if err := s.act(r.c, req); err != nil {
				fmt.Fprintf(r.c.Stderr, "scancel: error: Kill job error on job step id %s: %s\n", s.text,
					document.PrintableText(strings.Join(strings.Fields(frame.ErrorText(err)), " ")))
				r.status = 1
			}
		}
	}
	return jobs, isStep
}

// checkFilters refuses values of filters that no job could ever have.
func (r *cancellation) checkFilters() error {
	if text := r.value("state"); text != "" {
		switch strings.ToUpper(text) {
		case "PENDING", "PD", "RUNNING", "R", "SUSPENDED", "S":
		default:
			fmt.Fprintf(r.c.Stderr, "Invalid job state specified: %s\n"+
				"Valid job states are PENDING, RUNNING, and SUSPENDED\n", document.PrintableText(text))
			return frame.ExitError(1)
		}
	}
	name := r.value("user")
	if name == "" {
		return nil
	}
	if _, err := user.Lookup(name); errors.As(err, new(user.UnknownUserError)) {
		return failWith(r.c, fmt.Errorf("Invalid user name: %s", name))
	}
	return nil
}

// request is what is to be done with the jobs.
func (r *cancellation) request() (*scheddapi.ActRequest, error) {
	text := r.value("signal")
	if text == "" || strings.EqualFold(text, "KILL") || text == "9" || strings.EqualFold(text, "SIGKILL") {
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_REMOVE, Reason: "scancel",
			Force: text != ""}, nil
	}
	if _, err := roost.SignalNumber(text); err != nil {
		return nil, fmt.Errorf("Unknown job signal: %s", text)
	}
	return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_SIGNAL, Signal: text}, nil
}

// selectors are the names by which the schedd knows what ids name: 12, 12_3, 12_[1-4],
// 12.0.
func (r *cancellation) selectors(ids []string) (all []string) {
	for _, text := range ids {
		for word := range strings.SplitSeq(strings.ReplaceAll(joinBrackets(text), ",", " "), " ") {
			if word = strings.ReplaceAll(word, ";", ","); word == "" {
				continue
			}
			list, ok := selectorsOf(word)
			if !ok {
				fmt.Fprintf(r.c.Stderr, "scancel: error: Invalid job id %s\n", document.PrintableText(word))
				r.status = 1
				continue
			}
			all = append(all, list...)
		}
	}
	return all
}

// joinBrackets writes the commas within brackets as semicolons.
func joinBrackets(text string) string {
	b, inside := []byte(text), false
	for i, c := range b {
		switch {
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case c == ',' && inside:
			b[i] = ';'
		}
	}
	return string(b)
}

func selectorsOf(word string) (list []string, ok bool) {
	number, step, isStep := strings.Cut(word, ".")
	if isStep && step != "batch" && step != "extern" {
		if _, err := strconv.ParseUint(step, 10, 32); err != nil {
			return []string{word}, !strings.Contains(number, "_") && isNumber(number) // of a host
		}
	}
	number, index, isTask := strings.Cut(number, "_")
	if !isNumber(number) {
		return nil, false
	}
	if !isTask || index == "*" {
		return []string{number}, true
	}
	indexes, err := hostlist.Expand("[" + strings.Trim(index, "[]") + "]")
	if err != nil {
		return nil, false
	}
	for _, i := range indexes {
		list = append(list, number+"["+i+"]")
	}
	return list, true
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 63)
	return err == nil && s[0] != '+'
}

// filter returns the jobs that the options choose, of those named or of all.
func (r *cancellation) filter(selectors []string, isNamed bool) (chosen []string, err error) {
	if isNamed && len(selectors) == 0 {
		return nil, nil
	}
	req := &scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: selectors}}
	switch {
	case r.value("user") != "":
		req.Owners = []string{r.value("user")}
	default: // those of others cannot be cancelled
		req.Owners = []string{frame.LoginName()}
	}
	if r.has("account") {
		req.Ads, req.Attributes = true, []string{roost.AttrGroup}
	}
	list, err := r.c.QueryJobs(req)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if r.matches(s) {
			chosen = append(chosen, s.GetId())
		}
	}
	return chosen, nil
}

func (r *cancellation) matches(s *scheddapi.JobStatus) bool {
	if name := r.value("name"); name != "" && !slices.Contains(strings.Split(name, ","), s.GetName()) {
		return false
	}
	if p := r.value("partition"); p != "" && p != s.GetQueue() && (p != roost.DefaultQueueName || s.GetQueue() != "") {
		return false
	}
	if a := r.value("account"); a != "" && a != records.NewJob(s).Account() {
		return false
	}
	if q := r.value("qos"); q != "" && q != "normal" {
		return false
	}
	state := document.StateOf(s)
	switch strings.ToUpper(r.value("state")) {
	case "":
		return true
	case "PENDING", "PD":
		return slices.Contains([]string{roost.Idle.String(), roost.Held.String(), roost.Blocked.String()}, state)
	case "RUNNING", "R":
		return state == roost.Running.String()
	case "SUSPENDED", "S":
		return state == roost.Suspended.String()
	}
	return false
}

// act cancels the jobs one after the other. One that has ended, or is not there, is no
// error.
func (r *cancellation) act(req *scheddapi.ActRequest, selectors []string) {
	for _, selector := range selectors {
		s, err := r.c.JobSchedd(frame.IDHost(selector))
		if err == nil {
			err = r.actOn(s, req, selector)
		}
		if err != nil {
			fmt.Fprintf(r.c.Stderr, "scancel: error: Kill job error on job id %s: %s\n", shownID(selector),
				document.PrintableText(strings.Join(strings.Fields(frame.ErrorText(err)), " ")))
			if r.status = 1; errors.Is(err, errNotRunning) {
				r.status = notRunningStatus
			}
		}
	}
}

// errNotRunning is Slurm's refusal of a signal to a job that does not run, and
// notRunningStatus the exit status then.
var errNotRunning = errors.New("Job can not be altered now, try again later")

const notRunningStatus = 228

// shownID writes a selector as Slurm writes ids.
func shownID(selector string) string {
	number, rest, isTask := strings.Cut(selector, "[")
	if !isTask {
		return number
	}
	return number + "_" + strings.TrimSuffix(rest, "]")
}

// actOn does what the request says to what one name stands for.
func (r *cancellation) actOn(s *scheddapi.ScheddClient, req *scheddapi.ActRequest, selector string) error {
	one := &scheddapi.ActRequest{Verb: req.GetVerb(), Reason: req.GetReason(), Force: req.GetForce(),
		Signal: req.GetSignal(), Selection: &scheddapi.Selection{Selectors: []string{selector}}}
	var reply *scheddapi.ActReply
	err := r.c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) (err error) {
		reply, err = s.Act(ctx, one)
		return frame.DecodeError(err)
	})
	if err != nil {
		return err
	}
	for _, result := range reply.GetResults() {
		switch kind := roost.ErrorKind(result.GetKind()); {
		case kind == roost.Conflict && req.GetVerb() == scheddapi.ActRequest_SIGNAL:
			return errNotRunning
		case result.GetError() == "", kind == roost.NotFound, kind == roost.Finished, kind == roost.Conflict:
		case kind == roost.PermissionDenied:
			return errors.New("Access/permission denied")
		default:
			return errors.New(result.GetError())
		}
	}
	return nil
}
