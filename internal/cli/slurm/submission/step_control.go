package submission

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/slurm/steps"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// stepName is a step on a command line: "12.0" or "12_3.0".
type stepName struct {
	text string
	task string // as the schedd knows it: "12[0]" or "12[3]"
	step string // its number
}

// parseStepName reads the name of a step that srun has started.
func parseStepName(text string) (s stepName, ok bool) {
	job, number, found := strings.Cut(text, ".")
	if _, err := strconv.ParseUint(number, 10, 32); !found || err != nil {
		return s, false
	}
	s = stepName{text: text, task: job + "[0]", step: number}
	if array, index, isTask := strings.Cut(job, "_"); isTask {
		if _, err := hostlist.Expand("[" + index + "]"); err != nil || !isNumber(array) || !isNumber(index) {
			return s, false
		}
		s.task = array + "[" + index + "]"
		return s, true
	}
	return s, isNumber(job)
}

// errNoStep says that there is no such step, or none any more.
var errNoStep = errors.New("Invalid job id specified")

// control has a step do something, by a command that runs in its job. Nobody but the
// job's owner and root may run one. Once the step has taken the call, the end of the job
// is no error.
func (s stepName) control(c *frame.Invocation, input io.Reader, words ...string) error {
	first := &scheddapi.ShellInput{Task: s.task, Command: append([]string{"roost", steps.ControlCommandName, s.step},
		words...)}
	stdin, stdout := c.Stdin, c.Stdout
	out := &acceptedWriter{to: stdout}
	c.Stdin, c.Stdout = input, out
	err := terminal.RunRemoteShell(c, first, terminal.LocalTerminal{})
	c.Stdin, c.Stdout = stdin, stdout
	var code frame.ExitError
	var kind roost.ErrorKind
	hasEnded := errors.As(err, &kind) && slices.Contains([]roost.ErrorKind{roost.NotFound, roost.Finished,
		roost.Conflict}, kind)
	switch {
	case hasEnded && out.accepted:
		return nil
	case hasEnded, errors.As(err, &code) && int(code) == steps.StatusNoStep:
		return errNoStep
	}
	return err
}

// acceptedWriter takes the word out of an output by which a step says that it has taken a
// call.
type acceptedWriter struct {
	to       io.Writer
	seen     int // bytes of the word
	accepted bool
}

func (w *acceptedWriter) Write(b []byte) (int, error) {
	rest := b
	for !w.accepted && len(rest) > 0 {
		if rest[0] != steps.Accepted[w.seen] {
			break
		}
		rest = rest[1:]
		w.seen++
		w.accepted = w.seen == len(steps.Accepted)
	}
	if len(rest) > 0 {
		if _, err := w.to.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// act cancels the step, or sends it a signal.
func (s stepName) act(c *frame.Invocation, req *scheddapi.ActRequest) error {
	words := []string{"cancel"}
	if req.GetVerb() == scheddapi.ActRequest_SIGNAL {
		words = []string{"signal", req.GetSignal()}
	}
	before := c.Stderr
	c.Stderr = io.Discard
	err := s.control(c, strings.NewReader(""), words...)
	c.Stderr = before
	if errors.As(err, new(frame.ExitError)) {
		return errors.New("Access/permission denied")
	}
	return err
}

// sattachCommand returns sattach.
func sattachCommand() *frame.Command {
	return &frame.Command{
		Name: "sattach", Group: frame.GroupSlurm, Summary: "show what the tasks of a running step write",
		Synopsis: "[OPTION…] JOB.STEP", RawArgs: true, MaxOperands: -1, Run: runSattach,
		Description: "Shows what the tasks of a running step of srun write, from its last lines on, and gives them " +
			"its standard input, until the step ends. Its exit status is that of the step. Ctrl-C leaves the step " +
			"running.",
		Examples: []frame.Example{
			{Line: "sattach 12.0", Description: "follow the first step of a job"},
			{Line: "sattach -l 12.0", Description: "the same, each line with the number of its task"},
			{Line: "sattach --input-filter 0 --output-filter 0 12.0", Description: "talk with the first task"},
			{Line: "sattach --layout 12.0", Description: "which task is on which machine"},
		},
		Flags: []ucli.Flag{
			textFlag("input-filter", "", "give standard input to task `N` only"),
			textFlag("output-filter", "", "show what task `N` writes only"),
			textFlag("error-filter", "", "show what task `N` writes to standard error only"),
			switchFlag("layout", "", "say where the tasks are, and end"),
			switchFlag("label", "l", "put the number of the task before each line"),
			switchFlag("quiet", "Q", "accepted"),
		},
	}
}

func runSattach(c *frame.Invocation) error {
	const required = getopt.Required
	table := getopt.Table{Options: []getopt.Option{{Name: "input-filter", Argument: required},
		{Name: "output-filter", Argument: required}, {Name: "error-filter", Argument: required}, {Name: "layout"},
		{Name: "label", Letter: 'l'}, {Name: "quiet", Letter: 'Q'}, {Name: "verbose", Letter: 'v'},
		{Name: "pty"}, {Name: "debugger-test"}, {Name: "help", Letter: 'h'}, {Name: "usage", Letter: 'u'},
		{Name: "version", Letter: 'V'}}}
	given, operands, err := table.Parse(c.Args)
	usage := func(text string) error {
		fmt.Fprintf(c.Stderr, "sattach: error: %s\nUsage: sattach [options] <jobid.stepid>\n", text)
		return frame.ExitError(1)
	}
	has := func(name string) bool { _, ok := getopt.Last(given, name); return ok }
	switch {
	case err != nil:
		fmt.Fprint(c.Stderr, getopt.Message("sattach", err))
		return frame.ExitError(1)
	case has("version"):
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	case has("help"), has("usage"):
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	case len(operands) != 1:
		return usage("too many parameters")
	}
	name, ok := parseStepName(operands[0])
	if !ok {
		return usage("Failed to parse stepid from command line options")
	}
	filter, err := readAttachFilter(given)
	if err != nil {
		fmt.Fprintf(c.Stderr, "sattach: error: %v\n", err)
		return frame.ExitError(1)
	}
	words := filter.Arguments()
	if has("layout") {
		words = []string{"layout"}
	}
	err = name.control(c, c.Stdin, words...)
	if errors.Is(err, errNoStep) {
		fmt.Fprintln(c.Stderr, "sattach: error: Could not get job step info: Job/step already completing or completed")
		return frame.ExitError(1)
	}
	return err
}

// readAttachFilter reads which streams are wanted. As Slurm's, "-" is all tasks, and
// standard error is that of the tasks of --output-filter unless --error-filter is given.
func readAttachFilter(given []getopt.Given) (filter steps.AttachFilter, err error) {
	_, quiet := getopt.Last(given, "quiet")
	_, verbose := getopt.Last(given, "verbose")
	_, pty := getopt.Last(given, "pty")
	_, filter.Label = getopt.Last(given, "label")
	filter.Input, filter.Output, filter.Error = steps.AllTasks, steps.AllTasks, steps.AllTasks
	filtered := false
	for _, o := range []struct {
		name string
		to   []*int64
	}{
		{"input-filter", []*int64{&filter.Input}},
		{"output-filter", []*int64{&filter.Output, &filter.Error}},
		{"error-filter", []*int64{&filter.Error}},
	} {
		text, ok := getopt.Last(given, o.name)
		if !ok {
			continue
		}
		filtered = true
		n := int64(steps.AllTasks)
		if text != "-" && !strings.EqualFold(text, "all") {
			number, err := strconv.ParseUint(text, 10, 31)
			if err != nil {
				return filter, fmt.Errorf("Invalid numeric value %q for %s.", text, o.name)
			}
			n = int64(number)
		}
		for _, to := range o.to {
			*to = n
		}
	}
	switch {
	case quiet && verbose:
		return filter, errors.New("don't specify both --verbose (-v) and --quiet (-Q)")
	case pty && filtered:
		return filter, errors.New("don't specify both --pty and I/O filtering")
	}
	return filter, nil
}
