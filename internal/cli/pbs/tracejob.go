package pbs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func tracejobCommand() *frame.Command {
	return &frame.Command{
		Name: "tracejob", Group: frame.GroupPBS, Summary: "tell what has happened to a job, in the order of time",
		RawArgs: true, MaxOperands: -1, Run: tracejob,
		Synopsis: "[-a] [-l] [-m] [-s] [-v] [-z] [-c COUNT] [-f FILTER] [-n DAYS] [-p PATH] [-w COLUMNS] JOB…",
		Description: "Prints a line for everything that has happened to a job within the last days, whether it has " +
			"ended or not, in the layout of OpenPBS: what users asked and the schedd decided (S), why it waits (L), " +
			"what its machines did (M), and what is accounted for it (A).",
		Examples: []frame.Example{
			{Line: "tracejob 123", Description: "what has happened to a job today"},
			{Line: "tracejob -n 7 123", Description: "within the last seven days"},
			{Line: "tracejob -n 7 -alm 123", Description: "only what the schedd decided"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("a", "", "without what is accounted"),
			pbsframe.ShortFlag("l", "", "without why it waits"),
			pbsframe.ShortFlag("m", "", "without what its machines did"),
			pbsframe.ShortFlag("s", "", "without what the schedd decided"),
			pbsframe.ShortFlag("v", "", "with the names of tasks and the numbers of attempts"),
			pbsframe.ShortFlag("z", "", "of lines that come often all"),
			pbsframe.ShortFlag("c", "COUNT",
				"what comes so many times comes often, and only its last is printed; 15 unless given"),
			pbsframe.ShortFlag("f", "FILTER",
				"without lines of this kind: job, job_usage, sched, admin, error and others of OpenPBS, or a number"),
			pbsframe.ShortFlag("n", "DAYS", "how many days to look back, of which today is one; 1 unless given"),
			pbsframe.ShortFlag("p", "PATH", "taken and not needed: there are no log files to be found"),
			pbsframe.ShortFlag("w", "COLUMNS", "how wide the screen is; 0 for lines of any length"),
		},
	}
}

const tracejobUsage = `USAGE: tracejob [-a|s|l|m|v] [-w size] [-p path] [-n days] [-f filter_type] job_identifier...
   -p : path to PBS_HOME
   -w : number of columns of your terminal
   -n : number of days in the past to look for job(s) [default 1]
   -f : filter out types of log entries, multiple -f's can be specified
   -z : toggle filtering excessive messages
   -c : what message count is considered excessive
   -a : don't use accounting log files
   -s : don't use server log files
   -l : don't use scheduler log files
   -m : don't use mom log files
   -v : verbose mode - show more error messages
`

// traceKinds are the kinds of lines by OpenPBS's names for them (its log.h).
func traceKinds() map[string]int {
	return map[string]int{
		"error": 0x1, "system": 0x2, "admin": 0x4, "job": 0x8, "job_usage": 0x10, "security": 0x20, "sched": 0x40,
		"debug": 0x80, "debug2": 0x100, "resv": 0x200,
		"debug3": 0x400, "debug4": 0x800, "force": 0x8000,
	}
}

// tracejobQuery is what tracejob was asked for.
type tracejobQuery struct {
	*frame.Invocation
	pbsframe.Options
	days, rareThreshold, columns int
	filter                       int
}

func tracejob(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "zvamslw:p:n:f:c:")
	t := &tracejobQuery{Invocation: c, Options: o, days: 1, rareThreshold: 15}
	if err != nil || !t.readOptions() || len(o.Operands) == 0 {
		fmt.Fprint(c.Stdout, tracejobUsage)
		return frame.ExitError(1)
	}
	code := 0
	for _, text := range o.Operands {
		found, err := t.traceJob(text)
		switch {
		case err != nil:
			return pbsframe.Fail(c, err)
		case !found:
			fmt.Fprintf(c.Stderr, "\ntracejob: Couldn't find Job Id %s in logs of past %s\n\n", qstat.VisibleText(text),
				document.Plural(t.days, "day"))
			code = 1
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// readOptions takes in the options that have values; false when one makes no sense.
func (t *tracejobQuery) readOptions() bool {
	number := func(letter byte, to *int, least int) bool {
		if !t.IsSet(letter) {
			return true
		}
		n, err := strconv.Atoi(t.Last(letter))
		*to = n
		return err == nil && n >= least
	}
	if t.columns = 80; t.OutScreen.Terminal {
		t.columns = t.OutScreen.Width
	}
	for _, f := range t.Options.Given['f'] {
		kind, known := traceKinds()[f]
		if n, err := strconv.ParseInt(f, 16, 32); !known && err == nil {
			kind, known = int(n), true
		}
		if !known {
			return false
		}
		t.filter |= kind
	}
	return number('n', &t.days, 1) && number('c', &t.rareThreshold, 1) && number('w', &t.columns, 0)
}

// traceLine is one of them.
type traceLine struct {
	at      int64 // unix nanoseconds
	logName byte  // S, L, M or A
	kind    int
	text    string
}

// traceJob prints what has happened to a job, and reports whether those days have
// anything of it.
func (t *tracejobQuery) traceJob(text string) (found bool, err error) {
	text = strings.TrimSpace(text)
	id, ok := pbsframe.ParseID(text)
	if !ok {
		return false, nil
	}
	if at := pbsframe.OperandHost(text); at != "" {
		id += "." + at
	}
	list, missing, err := t.QueryPool("",
		&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{id}},
			History: true, Ads: true, Tasks: frame.NamesOnlyTasks([]string{id})})
	if err == nil && len(list) == 0 {
		err = frame.UnreachableError(missing)
	}
	if errors.Is(err, roost.NotFound) || err == nil && len(list) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s := list[0]
	events, _, err := jobs.Events(t.Invocation, s.GetId(), 0)
	if err != nil {
		return false, err
	}
	y, m, d := t.Now().Date()
	since := time.Date(y, m, d-t.days+1, 0, 0, 0, 0, t.Now().Location()).UnixNano()
	lines := slices.DeleteFunc(t.traceLines(s, events), func(l traceLine) bool {
		return l.at < since || l.kind&t.filter != 0 ||
			t.IsSet(map[byte]byte{'S': 's', 'L': 'l', 'M': 'm', 'A': 'a'}[l.logName])
	})
	if len(lines) == 0 {
		return false, nil
	}
	slices.SortStableFunc(lines, func(a, b traceLine) int { return cmp.Compare(a.at, b.at) })
	if !t.IsSet('z') {
		lines = isRareEvent(lines, t.rareThreshold)
	}
	fmt.Fprintf(t.Stdout, "\nJob: %s\n\n", pbsframe.IDText(s.GetId(), s.GetArray()))
	for _, l := range lines {
		at := document.TimeOfNanos(l.at).In(t.Now().Location()).Format("01/02/2006 15:04:05")
		fmt.Fprintf(t.Stdout, "%-20s %-5c%s\n", at, l.logName, wrapLines(l.text, 26, t.columns))
	}
	return true, nil
}

// isRareEvent leaves of lines that come often only the last.
func isRareEvent(lines []traceLine, often int) []traceLine {
	type same struct {
		from byte
		text string
	}
	count := map[same]int{}
	for _, l := range lines {
		count[same{l.logName, l.text}]++
	}
	left := map[same]int{}
	for key, n := range count {
		left[key] = n
	}
	return slices.DeleteFunc(lines, func(l traceLine) bool {
		key := same{l.logName, l.text}
		left[key]--
		return count[key] >= often && left[key] > 0
	})
}

// wrapLines breaks a text at blanks to fit a screen, and indents each line but the first.
func wrapLines(text string, indent, columns int) string {
	if text = qstat.VisibleText(text); columns <= indent+20 || len(text) <= columns-indent {
		return text
	}
	var b strings.Builder
	room := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			room = columns - indent
		case len(word)+1 > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			room = columns - indent
		default:
			b.WriteByte(' ')
			room--
		}
		b.WriteString(word)
		room -= len(word)
	}
	return b.String()
}
