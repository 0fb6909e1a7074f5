package reports

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
)

func squeueCommand() *frame.Command {
	return &frame.Command{
		Name: "squeue", Group: frame.GroupSlurm, Summary: "list jobs as Slurm does", RawArgs: true, MaxOperands: -1,
		Run: squeue,
		Synopsis: "[-j IDS] [-u USERS] [-t STATES] [-p PARTITIONS] [-n NAMES] [-A ACCOUNTS] [-w NODES] [-o FORMAT | " +
			"-O FIELDS | --json] [-S SORT] [-hlra] [--me] [--start] [-i SECONDS]",
		Description: "Lists the jobs in the queue of this machine that have not ended, of all users, in the layout " +
			"of squeue of Slurm. With -t it lists also those that ended in the last 300 seconds.",
		Examples: []frame.Example{
			{Line: "squeue --me", Description: "your jobs"},
			{Line: "squeue -h -j 12 -o '%i %T'", Description: "the state of a job, for a program"},
			{Line: "squeue -t all --json", Description: "all jobs, ended ones too, as JSON"},
		},
	}
}

func squeueOptions() []getopt.Option {
	with := func(name string, letter byte) getopt.Option {
		return getopt.Option{Name: name, Letter: letter, Argument: getopt.Required}
	}
	return []getopt.Option{
		with("account", 'A'), {Name: "all", Letter: 'a'}, {Name: "array", Letter: 'r'}, with("format", 'o'),
		with("Format", 'O'), {Name: "noheader", Letter: 'h'}, {Name: "hide"}, with("iterate", 'i'),
		with("licenses", 'L'), {Name: "local"}, {Name: "long", Letter: 'l'}, with("clusters", 'M'),
		with("cluster", 0), {Name: "me"}, with("name", 'n'), {Name: "noconvert"}, with("partition", 'p'),
		{Name: "priority", Letter: 'P'}, with("qos", 'q'), with("reservation", 'R'), {Name: "sibling"},
		with("sort", 'S'), {Name: "start"}, with("states", 't'), {Name: "federation"}, with("user", 'u'),
		{Name: "verbose", Letter: 'v'}, with("nodelist", 'w'), with("nodes", 0), {Name: "only-job-state"},
		{Name: "jobs", Letter: 'j', Argument: getopt.Optional}, {Name: "json", Argument: getopt.Optional},
		{Name: "steps", Letter: 's', Argument: getopt.Optional}, {Name: "expand-patterns"}, {Name: "helpFormat"},
		{Name: "helpformat"},
	}
}

// squeueList is what one execution of squeue lists.
type squeueList struct {
	*frame.Invocation
	given    []getopt.Given
	query    jobQuery
	states   []string // long ones; none: those that are no ends
	all      bool     // of states
	nodes    []string
	format   records.Format
	order    string
	byID     bool
	idsGiven int
}

// value is the value of an option, or of the variable that stands for it.
func (l *squeueList) value(option, variable string) string {
	if text, ok := getopt.Last(l.given, option); ok || variable == "" {
		return text
	}
	return l.Getenv(variable)
}

func squeue(c *frame.Invocation) error {
	given, operands, answered, err := parseOptions(c, squeueOptions())
	if err != nil || answered {
		return err
	}
	if has(given, "helpFormat") || has(given, "helpformat") {
		printFieldNames(c.Stdout, records.FieldNames())
		return nil
	}
	l := &squeueList{Invocation: c, given: given}
	if jobs, isByID := getopt.Last(given, "jobs"); len(operands) > 0 && (isByID && jobs == "" || has(given, "steps")) {
		name := "steps" // the value of -j may be the next word
		if isByID {
			name = "jobs"
		}
		l.given = append(l.given, getopt.Given{Name: name, Value: operands[0], HasValue: true})
		operands = operands[1:]
	}
	if len(operands) > 0 {
		return fail(c, "Unrecognized option: "+operands[0])
	}
	if err := l.readFilters(); err != nil {
		return err
	}
	if err := l.readFormat(); err != nil {
		return err
	}
	every, err := strconv.Atoi(cmp.Or(l.value("iterate", ""), "0"))
	if err != nil || every < 0 {
		return fail(c, "Invalid value for --iterate")
	}
	for {
		if err := l.printOnce(); err != nil || every == 0 {
			return err
		}
		timer := time.NewTimer(time.Duration(every) * time.Second)
		select {
		case <-c.Context.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// printFieldNames prints names in four columns, as squeue --helpFormat does.
func printFieldNames(w io.Writer, names []string) {
	for i, name := range names {
		fmt.Fprintf(w, "%-20s", name)
		if i%4 == 3 || i == len(names)-1 {
			fmt.Fprintln(w)
		}
	}
}

// readFilters reads the options that choose jobs.
func (l *squeueList) readFilters() error {
	ids, isByID := getopt.Last(l.given, "jobs")
	ids = cmp.Or(ids, l.Getenv("SQUEUE_JOBS"))
	steps, hasSteps := getopt.Last(l.given, "steps")
	if ids == "" && hasSteps {
		ids = steps
	}
	l.byID = isByID && ids != ""
	for _, text := range splitIDs(ids) {
		id, ok := parseJobID(text)
		if !ok {
			return fail(l.Invocation, "Invalid job id: "+text)
		}
		l.idsGiven++
		l.query.ids = append(l.query.ids, id)
	}
	if has(l.given, "me") {
		l.query.users = []string{frame.LoginName()}
	}
	for _, name := range list(l.value("user", "SQUEUE_USERS")) {
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		} else if _, err := user.Lookup(name); errors.As(err, new(user.UnknownUserError)) {
			fmt.Fprintf(l.Stderr, "squeue: error: Invalid user: %s\n", name)
		}
		l.query.users = append(l.query.users, name)
	}
	for _, text := range list(l.value("states", "SQUEUE_STATES")) {
		if strings.EqualFold(text, "all") {
			l.all = true
			continue
		}
		long, ok := records.ParseState(text)
		if !ok {
			fmt.Fprintf(l.Stderr, "squeue: error: Invalid job state specified: %s\n"+
				"squeue: error: Valid job states include: %s\n", text, records.StateList())
			return frame.ExitError(failure)
		}
		l.states = append(l.states, long)
	}
	l.nodes = nil
	if text := cmp.Or(l.value("nodelist", ""), l.value("nodes", "")); text != "" {
		hosts, err := hostlist.Expand(text)
		if err != nil {
			return fail(l.Invocation, "Invalid node name "+text)
		}
		all, err := machines(l.Invocation)
		if err != nil {
			return failWith(l.Invocation, err)
		}
		for _, h := range hosts {
			if !slices.ContainsFunc(all, func(n document.Node) bool { return wantsNode([]string{h}, n.Name) }) {
				return fail(l.Invocation, "Invalid node name "+h)
			}
		}
		l.nodes = hosts
	}
	ends := slices.ContainsFunc(l.states, func(long string) bool {
		return (&records.Job{State: long}).IsFinal()
	})
	l.query.ended = l.all || ends || l.byID || has(l.given, "json") && len(l.states) == 0
	if has(l.given, "json") && len(l.states) == 0 {
		l.all = true
	}
	l.query.each = has(l.given, "array") || l.Getenv("SQUEUE_ARRAY") != ""
	return nil
}

// stateFormat is the format of squeue --only-job-state.
const stateFormat = "%.18i %.2t"

// readFormat reads the options about what is listed of a job.
func (l *squeueList) readFormat() error {
	short, hasShort := getopt.Last(l.given, "format")
	long, hasLong := getopt.Last(l.given, "Format")
	if hasShort && hasLong {
		return fail(l.Invocation, "-O (--Format) is incompatible with -o (--format)")
	}
	if !hasShort && !hasLong {
		if long = l.Getenv("SQUEUE_FORMAT2"); long == "" {
			short = l.Getenv("SQUEUE_FORMAT")
		}
	}
	switch {
	case long != "":
		f, err := records.ParseNames(long)
		if err != nil {
			return fail(l.Invocation, err.Error())
		}
		l.format = f
	default:
		standard := records.DefaultFormat
		if has(l.given, "long") {
			standard = records.LongFormat
		}
		switch {
		case has(l.given, "start"):
			standard = records.StartFormat
		case has(l.given, "only-job-state"):
			standard = stateFormat
		}
		if has(l.given, "steps") {
			return l.readStepFormat(cmp.Or(short, records.StepFormat))
		}
		f, unknown := records.ParseFormat(cmp.Or(short, standard))
		for _, letter := range unknown {
			fmt.Fprintf(l.Stderr, "squeue: error: Invalid job format specification: %s\n", letter)
		}
		l.format = f
	}
	standard := "P,t,-p"
	if has(l.given, "start") {
		standard = "S"
	}
	l.order = cmp.Or(l.value("sort", "SQUEUE_SORT"), standard)
	l.query.ads = true
	return nil
}

// readStepFormat reads a format of squeue --steps.
func (l *squeueList) readStepFormat(text string) error {
	f, unknown := records.ParseStepFormat(text)
	for _, letter := range unknown {
		fmt.Fprintf(l.Stderr, "squeue: error: Invalid job step format specification: %s\n", letter)
	}
	l.format, l.order, l.query.ads = f, "t", true
	return nil
}

// printSteps prints the steps that run. Those of srun come before the script.
func (l *squeueList) printSteps(out io.Writer, jobs []*records.Job, now *records.Clock) {
	for _, j := range jobs {
		wanted := wantedSteps(l.query.ids, j)
		steps := j.Steps()
		if len(steps) > 0 && steps[0].StepName == records.BatchStep {
			steps = append(steps[1:], steps[0])
		}
		for _, s := range steps {
			if s.IsRunning() && (len(wanted) == 0 || slices.Contains(wanted, s.StepName)) {
				fmt.Fprintln(out, l.format.StepLine(s, now))
			}
		}
	}
}

// printOnce asks for the jobs and prints them.
func (l *squeueList) printOnce() error {
	now := clock(l.Invocation)
	l.query.since, l.query.unlisted = now.Now.Add(-records.MinJobAge).UnixNano(), 0
	jobs, err := l.query.find(l.Invocation)
	if err != nil {
		return failWith(l.Invocation, err)
	}
	known := 0
	jobs = slices.DeleteFunc(jobs, func(j *records.Job) bool {
		if j.IsFinal() && now.Now.Sub(time.Unix(0, j.GetEnded())) > records.MinJobAge {
			return true
		}
		known++
		return !l.matches(j)
	})
	if l.byID && l.idsGiven == 1 && known == 0 {
		fmt.Fprintln(l.Stderr, "slurm_load_jobs error: Invalid job id specified")
		return frame.ExitError(failure)
	}
	if err := records.Sort(jobs, l.order, now); err != nil {
		return fail(l.Invocation, err.Error())
	}
	out := bufio.NewWriterSize(l.Stdout, 64<<10)
	defer out.Flush()
	if has(l.given, "json") {
		return printJSON(out, l.Invocation, jobs, now)
	}
	printCluster(l.Invocation, out, l.given)
	if has(l.given, "long") && !has(l.given, "noheader") {
		fmt.Fprintln(out, now.Now.In(now.Zone).Format("Mon Jan 02 15:04:05 2006"))
	}
	if !has(l.given, "noheader") {
		fmt.Fprintln(out, l.format.Titles())
	}
	if has(l.given, "steps") {
		l.printSteps(out, jobs, now)
		return nil
	}
	for _, j := range jobs {
		fmt.Fprintln(out, l.format.Line(j, now))
	}
	return nil
}

// matches reports whether a job meets the options that choose.
func (l *squeueList) matches(j *records.Job) bool {
	in := func(option, variable, value string) bool {
		wanted := list(l.value(option, variable))
		return len(wanted) == 0 || slices.Contains(wanted, value)
	}
	switch {
	case !l.all && len(l.states) == 0 && j.IsFinal():
		return false
	case !l.all && len(l.states) > 0 && !slices.Contains(l.states, j.State):
		return false
	case len(l.query.users) > 0 && !slices.Contains(l.query.users, j.GetOwner()):
		return false
	case len(l.nodes) > 0 && !slices.ContainsFunc(j.Hosts(), func(h string) bool { return l.onNode(h) }):
		return false
	case has(l.given, "start") && j.State != "PENDING":
		return false
	}
	return in("partition", "SQUEUE_PARTITION", j.Partition()) && in("name", "SQUEUE_NAMES", j.GetName()) &&
		in("account", "SQUEUE_ACCOUNT", j.Account()) && in("qos", "SQUEUE_QOS", "normal") &&
		in("reservation", "", j.GetReservation())
}

// onNode reports whether a machine is among those asked for, by its whole or short name.
func (l *squeueList) onNode(host string) bool {
	short, _, _ := strings.Cut(host, ".")
	return slices.Contains(l.nodes, host) || slices.Contains(l.nodes, short)
}

// printJSON prints jobs as squeue --json does, one after the other.
func printJSON(w io.Writer, c *frame.Invocation, jobs []*records.Job, now *records.Clock) error {
	fmt.Fprint(w, "{\n  \"jobs\": [")
	for i, j := range jobs {
		text, err := j.MarshalJob(now)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, "\n    %s", text)
	}
	node, _ := c.ServerName()
	tail, err := json.Marshal(map[string]any{
		"last_backfill": map[string]any{"set": true, "infinite": false, "number": 0},
		"last_update":   map[string]any{"set": true, "infinite": false, "number": now.Now.Unix()},
		"meta": map[string]any{
			"plugin":  map[string]any{"type": "", "name": "", "data_parser": "data_parser/v0.0.42"},
			"client":  map[string]any{"source": "", "user": frame.LoginName(), "group": ""},
			"command": append([]string{c.Command.Name}, c.Args...),
			"slurm": map[string]any{"release": slurmVersion, "cluster": node,
				"version": map[string]any{"major": "24", "micro": "5", "minor": "11"}},
		},
		"errors": []string{}, "warnings": []string{},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n  ],\n  %s\n", tail[1:])
	return nil
}
