package reports

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/records"
)

func sacctCommand() *frame.Command {
	return &frame.Command{
		Name: frame.SlurmPrefix + "sacct", Group: frame.GroupSlurm,
		Summary: "list jobs that run and have ended as Slurm does",
		RawArgs: true, MaxOperands: -1, Run: runSacct,
		Synopsis: "[-j IDS] [-S TIME] [-E TIME] [-s STATES] [-u USERS] [-a] [--name NAMES] [-o FIELDS] [-X] [-n] " +
			"[-p | -P] [--delimiter TEXT] [--json]",
		Description: "Lists your jobs of today, or those named, from the queue and the history of this machine, with " +
			"the fields of sacct of Slurm. It needs no accountant; roost sacct asks the one of the pool.",
		Examples: []frame.Example{
			{Line: "sacct -j 12 -X -n -P -o State,ExitCode", Description: "how a job ended, for a program"},
			{Line: "sacct -S 2026-11-01 -s F,TO", Description: "what has failed since a day"},
		},
	}
}

func sacctOptions() []getopt.Option {
	with := func(name string, letter byte) getopt.Option {
		return getopt.Option{Name: name, Letter: letter, Argument: getopt.Required}
	}
	return []getopt.Option{
		with("accounts", 'A'), {Name: "allusers", Letter: 'a'}, {Name: "brief", Letter: 'b'},
		{Name: "completion", Letter: 'c'}, with("clusters", 'M'), with("cluster", 0), with("delimiter", 0),
		{Name: "duplicates", Letter: 'D'}, with("endtime", 'E'), with("file", 'f'), with("flags", 'F'),
		with("format", 'o'), {Name: "helpformat", Letter: 'e'}, with("jobs", 'j'), with("job", 0),
		{Name: "json", Argument: getopt.Optional}, {Name: "local"}, {Name: "long", Letter: 'l'},
		{Name: "allclusters", Letter: 'L'}, with("name", 0), {Name: "noconvert"}, {Name: "noheader", Letter: 'n'},
		with("nodelist", 'N'), {Name: "parsable", Letter: 'p'}, {Name: "parsable2", Letter: 'P'},
		with("partition", 'r'), with("qos", 'q'), with("starttime", 'S'), with("state", 's'),
		{Name: "truncate", Letter: 'T'}, with("uid", 'u'), with("user", 0), with("units", 0),
		{Name: "verbose", Letter: 'v'}, with("wckeys", 'W'), {Name: "allocations", Letter: 'X'},
		{Name: "array"}, {Name: "expand-patterns"},
	}
}

// sacctList is what one execution of sacct lists.
type sacctList struct {
	*frame.Invocation
	given      []getopt.Given
	ids        []jobID
	from, to   time.Time
	states     []string
	users      []string
	stepsToo   bool
	printer    sacct.Printer
	setPart    func(sacct.Part)
	isDocument bool
}

// last is the value of the last of some options.
func (l *sacctList) last(names ...string) (text string) {
	for _, name := range names {
		if value, ok := getopt.Last(l.given, name); ok {
			text = value
		}
	}
	return text
}

func runSacct(c *frame.Invocation) error {
	given, operands, answered, err := parseOptions(c, sacctOptions())
	if err != nil || answered {
		return err
	}
	if has(given, "helpformat") {
		_, err := io.WriteString(c.Stdout, sacct.SlurmFieldList())
		return err
	}
	l := &sacctList{Invocation: c, given: given, stepsToo: !has(given, "allocations")}
	if len(operands) > 0 {
		return fail(c, "Unknown arguments:\n "+strings.Join(operands, "\n "))
	}
	if err := l.readFilters(); err != nil {
		return err
	}
	if err := l.newPrinter(); err != nil {
		return err
	}
	q := &jobQuery{ids: l.ids, ended: true, ads: true, since: l.from.UnixNano(), users: l.users}
	jobs, err := q.find(c)
	if err != nil {
		return failWith(c, err)
	}
	for _, j := range jobs {
		if err := l.print(j); err != nil {
			return err
		}
	}
	return l.printer.Close()
}

// readFilters reads the options that choose jobs.
func (l *sacctList) readFilters() error {
	now := l.Now()
	y, m, d := now.In(time.Local).Date()
	l.from, l.to = time.Date(y, m, d, 0, 0, 0, 0, time.Local), now.Add(time.Minute)
	var ids []string
	for _, g := range l.given { // -j may be given several times
		if g.Name == "jobs" || g.Name == "job" {
			ids = append(ids, splitIDs(g.Value)...)
		}
	}
	for _, text := range ids {
		id, ok := parseJobID(text)
		if !ok {
			return fail(l.Invocation, "Invalid job id: "+text)
		}
		l.ids = append(l.ids, id)
		l.from = time.Unix(0, 0)
	}
	for _, one := range []struct {
		name string
		to   *time.Time
	}{{"starttime", &l.from}, {"endtime", &l.to}} {
		text := l.last(one.name)
		if text == "" {
			continue
		}
		t, ok := parseTime(text, now)
		if *one.to = t; !ok {
			return fail(l.Invocation, "Invalid time specification (pos=0): "+text)
		}
	}
	for _, text := range list(l.last("state")) {
		long, ok := records.ParseState(text)
		if !ok {
			return fail(l.Invocation, "State '"+text+"' is not recognized")
		}
		l.states = append(l.states, long)
	}
	switch users := list(l.last("uid", "user")); {
	case len(users) > 0:
		l.users = users
	case len(l.ids) == 0 && !has(l.given, "allusers") && os.Geteuid() != 0:
		l.users = []string{frame.LoginName()}
	}
	return nil
}

// briefFormat are the fields of sacct --brief.
const briefFormat = "jobid,state,exitcode"

// longFormat are the fields of sacct --long.
const longFormat = "jobid,jobidraw,jobname,partition,maxrss,alloccpus,elapsed,state,exitcode,reqmem,alloctres,nodelist"

// newPrinter makes the printer that the options ask for.
func (l *sacctList) newPrinter() error {
	format := l.Getenv("SLURM_TIME_FORMAT")
	options := sacct.Options{Location: time.Local, UnixTimes: format == "%s"}
	if has(l.given, "json") {
		l.printer, l.isDocument = sacct.NewJSON(l.Stdout, options), true
		l.setPart = func(sacct.Part) {}
		return nil
	}
	fields := cmp.Or(l.last("format"), l.Getenv("SACCT_FORMAT"), sacct.DefaultFormat)
	switch {
	case has(l.given, "long"):
		fields = longFormat
	case has(l.given, "brief"):
		fields = briefFormat
	}
	items := strings.Split(fields, ",")
	for i, item := range items {
		if strings.EqualFold(strings.TrimSpace(item), "state") {
			items[i] = "state%10" // as wide as in Slurm
		}
		if name, _, _ := strings.Cut(strings.TrimSpace(item), "%"); name != "" && !sacct.IsField(name) {
			return fail(l.Invocation, fmt.Sprintf("Invalid field requested: %q", name))
		}
	}
	columns, err := sacct.ParseFormat(strings.Join(items, ","))
	if err != nil {
		return fail(l.Invocation, err.Error())
	}
	head := !has(l.given, "noheader")
	if has(l.given, "parsable") || has(l.given, "parsable2") {
		p, err := sacct.NewLines(l.Stdout, columns, options, head, cmp.Or(l.last("delimiter"), "|"),
			!has(l.given, "parsable2"))
		if err != nil {
			return fail(l.Invocation, err.Error())
		}
		l.printer, l.setPart = p, p.SetPart
		return nil
	}
	p := sacct.NewTable(l.Stdout, columns, options, head)
	l.printer, l.setPart = p, p.SetPart
	return nil
}

// matches reports whether a job meets the options that choose.
func (l *sacctList) matches(j *records.Job) bool {
	in := func(name, value string) bool {
		wanted := list(l.last(name))
		return len(wanted) == 0 || slices.Contains(wanted, value)
	}
	switch {
	case j.IsFinal() && j.GetEnded() < l.from.UnixNano(), j.GetSubmitted() > l.to.UnixNano():
		return false
	case len(l.states) > 0 && !slices.Contains(l.states, j.State):
		return false
	case len(l.users) > 0 && !slices.Contains(l.users, j.GetOwner()):
		return false
	}
	return in("accounts", j.Account()) && in("name", j.GetName()) && in("partition", j.Partition()) &&
		in("qos", "normal")
}

// print prints the row of a job, and those of its steps if it has started.
func (l *sacctList) print(j *records.Job) error {
	if !l.matches(j) {
		return nil
	}
	row := attemptOf(j)
	part := sacct.Part{HasSteps: true, Number: j.RawNumber()}
	if j.IsArray && !j.IsTask {
		part.Indexes = strings.TrimPrefix(j.ID(), j.ArrayID()+"_")
	}
	wanted := wantedSteps(l.ids, j)
	if len(wanted) == 0 {
		l.setPart(part)
		if err := l.printer.Print(row); err != nil {
			return err
		}
	}
	if (!l.stepsToo && len(wanted) == 0) || l.isDocument {
		return nil
	}
	for _, s := range j.Steps() {
		if len(wanted) > 0 && !slices.Contains(wanted, s.StepName) {
			continue
		}
		l.setPart(stepPart(part, s))
		if err := l.printer.Print(stepRow(row, s)); err != nil {
			return err
		}
	}
	return nil
}

// wantedSteps are the steps that ids name of a job; none: all of it.
func wantedSteps(ids []jobID, j *records.Job) (steps []string) {
	for _, id := range ids {
		if id.includes(j) {
			if id.step == "" {
				return nil
			}
			steps = append(steps, id.step)
		}
	}
	return steps
}

// stepPart is the part of a job that a step is.
func stepPart(part sacct.Part, s *records.Step) sacct.Part {
	part.Step, part.StepName = s.StepName, s.Name
	const perMilli = int64(time.Millisecond)
	u := &sacct.StepUsage{Tasks: s.Tasks(), Nodes: int64(s.NodeCount()), Layout: "Block"}
	if r := s.Record; r != nil {
		tasks := max(int64(r.GetTasks()), 1)
		cpu := r.GetUserCpu() + r.GetSystemCpu()
		if r.GetEnded() != 0 {
			u.IsMeasured = true
			u.MaxRSS = sacct.Extreme{Value: r.GetMaxRss(), Task: int64(r.GetMaxRssTask()), Node: r.GetMaxRssNode()}
			u.MinCPU = sacct.Extreme{Value: r.GetMinCpu() / perMilli, Task: int64(r.GetMinCpuTask()),
				Node: r.GetMinCpuNode()}
			u.AveRSS, u.AveCPU = r.GetSumRss()/tasks, cpu/perMilli/tasks
		}
		part.Usage = u
		return part
	}
	d := s.GetUsage()
	if e := s.GetExit(); e.GetUsage() != nil {
		d = e.GetUsage()
	}
	cpu := (d.GetUserCpu() + d.GetSystemCpu()) / perMilli
	peak := max(d.GetPeakMemory(), s.GetExit().GetMaxRss())
	u.IsMeasured = d != nil || s.GetExit() != nil
	u.MaxRSS, u.MinCPU = sacct.Extreme{Value: peak, Node: s.NodeList()}, sacct.Extreme{Value: cpu, Node: s.NodeList()}
	u.AveRSS, u.AveCPU = peak, cpu
	u.Read, u.Written, u.Layout = d.GetReadBytes(), d.GetWriteBytes(), "Unknown"
	part.Usage = u
	return part
}

// stepRow is the row of a job as that of one of its steps.
func stepRow(job *accounting.AttemptRecord, s *records.Step) *accounting.AttemptRecord {
	if s.Record == nil {
		return job
	}
	row, entry := *job, *job.Job
	row.Job = &entry
	row.Node, row.Held.CPU = s.NodeList(), roost.MilliCPU(s.CPUs()*1000)
	row.Started, row.Ended = millis(s.Start().UnixNano()), 0
	entry.Submitted, entry.Eligible = row.Started, row.Started
	if end := s.End(); !end.IsZero() {
		row.Ended = millis(end.UnixNano())
	}
	row.Wall = s.RunTime(time.Now()).Milliseconds()
	code, signal := s.ExitCode()
	row.Cause, row.ExitCode, row.Signal = endCause(s.State, code, signal), int32(code), int32(signal)
	row.Reason, entry.Removed = "", s.State == "CANCELLED"
	r := s.Record
	const perMilli = int64(time.Millisecond)
	row.UserCPU, row.SystemCPU, row.Peak.Memory = r.GetUserCpu()/perMilli, r.GetSystemCpu()/perMilli,
		roost.Bytes(r.GetMaxRss())
	row.Read, row.Written, row.Segments = 0, 0, nil
	if s.State == "SUSPENDED" {
		row.Segments = job.Segments
	}
	return &row
}

// attemptOf returns a job as accounts have it.
func attemptOf(j *records.Job) *accounting.AttemptRecord {
	uid, _ := j.Ad.Int(roost.AttrOwnerUID)
	gid, _ := j.Ad.Int(roost.AttrOwnerGID)
	group, _ := j.Ad.Str(roost.AttrUnixGroup)
	r := j.GetRequest()
	request := roost.Resources{CPU: roost.MilliCPU(r.GetMilliCpu()), Memory: roost.Bytes(r.GetMemory()),
		Disk: roost.Bytes(r.GetDisk()), GPUs: int(r.GetGpus())}
	entry := &accounting.JobEntry{Host: j.Host, Name: j.GetName(), Owner: j.GetOwner(), UID: uint32(uid),
		GID: uint32(gid), UnixGroup: group, Group: j.Account(), Queue: j.GetQueue(), Array: j.IsArray,
		Tasks: int(j.GetTasks()), Request: request, Walltime: j.Limit().Milliseconds(), Arguments: j.Command(),
		WorkDir: j.WorkDir(), Submitted: millis(j.GetSubmitted()), Eligible: millis(j.GetEligible())}
	entry.Seq = j.Number
	a := &accounting.AttemptRecord{Job: entry}
	a.Seq, a.Node, a.Held = j.Number, j.NodeList(), request
	index, _ := strconv.Atoi(j.Indexes)
	a.Index, a.Attempt = index, roost.AttemptNumber(max(j.GetAttempt(), 1))
	if j.State == "PENDING" {
		return a
	}
	a.Started = millis(j.GetStarted())
	if j.IsFinal() {
		a.Ended, entry.Ended = millis(j.GetEnded()), millis(j.GetEnded())
	}
	a.Wall = j.RunTime(time.Now()).Milliseconds()
	if j.State == "SUSPENDED" {
		a.Segments = []accounting.Segment{{Suspended: true}}
	}
	code, signal := j.ExitCode()
	a.Reason = j.Reason() // never empty: clients match the column
	a.Cause, a.ExitCode, a.Signal = endCause(j.State, code, signal), int32(code), int32(signal)
	entry.Removed = j.State == "CANCELLED"
	setUsage(a, j)
	return a
}

// millis turns unix nanoseconds into milliseconds.
func millis(nanos int64) accounting.Millis { return accounting.Millis(nanos / int64(time.Millisecond)) }

// setUsage sets what a job has used.
func setUsage(a *accounting.AttemptRecord, j *records.Job) {
	const perMilli = int64(time.Millisecond)
	u, e := j.GetUsage(), j.GetExit()
	if e.GetUsage() != nil {
		u = e.GetUsage()
	}
	a.UserCPU, a.SystemCPU = u.GetUserCpu()/perMilli, u.GetSystemCpu()/perMilli
	if e != nil {
		a.UserCPU, a.SystemCPU = e.GetUserCpu()/perMilli, e.GetSystemCpu()/perMilli
	}
	a.Peak.Memory = roost.Bytes(max(u.GetPeakMemory(), e.GetMaxRss()))
	a.Read, a.Written = u.GetReadBytes(), u.GetWriteBytes()
}

// endCause is a cause of accounts that stands for a state of Slurm.
func endCause(state string, code, signal int) accounting.EndCause {
	switch state {
	case "COMPLETED", "FAILED":
		switch isSuccess := code == 0 && signal == 0; {
		case state == "COMPLETED" && !isSuccess:
			return accounting.EndedOwnSuccess
		case state == "FAILED" && isSuccess:
			return accounting.EndedOwnFailure
		}
		return accounting.EndedExit
	case "CANCELLED":
		return accounting.EndedRemoval
	case "TIMEOUT":
		return accounting.EndedWalltime
	case "OUT_OF_MEMORY":
		return accounting.EndedMemory
	case "NODE_FAIL":
		return accounting.EndedMachine
	case "PREEMPTED":
		return accounting.EndedPreemption
	case "BOOT_FAIL":
		return accounting.EndedPrologue
	}
	return accounting.NotEnded
}

// parseTime reads a time as -S and -E take it: "now-2days", "2026-11-01T12:00", "12:00",
// "1101" or "11/01/26".
func parseTime(text string, now time.Time) (time.Time, bool) {
	now = now.In(time.Local)
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, time.Local)
	lower := strings.ToLower(text)
	switch lower {
	case "now":
		return now, true
	case "today", "midnight":
		return today, true
	case "noon":
		return today.Add(12 * time.Hour), true
	case "tomorrow":
		return today.AddDate(0, 0, 1), true
	}
	if offset, ok := strings.CutPrefix(lower, "now"); ok {
		return parseOffset(offset, now)
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "01/02/06-15:04:05",
		"01/02/06-15:04", "01/02/06", "010206", "01/02/2006"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return today.Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
				time.Duration(t.Second())*time.Second), true
		}
	}
	for _, layout := range []string{"01/02", "0102"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return time.Date(y, t.Month(), t.Day(), 0, 0, 0, 0, time.Local), true
		}
	}
	return time.Time{}, false
}

// parseOffset reads "+2hours" or "-7days"; without a unit they are seconds.
func parseOffset(text string, now time.Time) (time.Time, bool) {
	if len(text) < 2 || text[0] != '+' && text[0] != '-' {
		return time.Time{}, false
	}
	digits := 1
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(text[1:digits])
	unit := text[digits:]
	if text[0] == '-' {
		n = -n
	}
	for _, u := range []struct {
		name string
		span time.Duration
	}{{"seconds", time.Second}, {"minutes", time.Minute}, {"hours", time.Hour}, {"days", 24 * time.Hour},
		{"weeks", 7 * 24 * time.Hour}} {
		if err == nil && strings.HasPrefix(u.name, unit) && n < 1<<20 && n > -1<<20 {
			return now.Add(time.Duration(n) * u.span), true
		}
	}
	return time.Time{}, false
}
