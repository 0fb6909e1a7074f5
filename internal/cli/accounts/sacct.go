package accounts

import (
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// defaultFields are the fields of roost sacct unless others are asked for.
const defaultFields = "JobID,JobName,User,NodeList,State,ExitCode,Elapsed,TotalCPU,MaxRSS,End"

// SacctCommand returns roost sacct: attempts of jobs in the form of Slurm's sacct.
func SacctCommand() *frame.Command {
	return &frame.Command{
		Name: "sacct", Group: frame.GroupSee, Summary: "attempts of ended jobs, in the form of Slurm's sacct",
		Synopsis: "[JOB]", MaxOperands: 1, Run: printSacct,
		Description: "Prints a line for each attempt that has ended, with Slurm's names of fields and states, from " +
			"the accounts of the pool. Times are UTC. Without a job it lists your attempts of the last day.",
		Examples: []frame.Example{
			{Line: "roost sacct 12.host", Description: "all attempts of a job"},
			{Line: "roost sacct --since 7d -P --format JobID,State,Elapsed", Description: "for a program"},
			{Line: "roost sacct --all --since 1d --export xdmod", Description: "a day for Open XDMoD"},
		},
		Flags: append(rangeFlags("1d"),
			&ucli.StringFlag{Name: "format", Aliases: []string{"o"}, Usage: "these `FIELDS`, with commas between",
				Value: defaultFields},
			&ucli.BoolFlag{Name: "parsable", Aliases: []string{"P"}, Usage: "fields with | between, for programs"},
			&ucli.BoolFlag{Name: "noheader", Usage: "no line of headings"},
			&ucli.StringFlag{Name: "export", Usage: "write for another program, as xdmod, swf, csv or jsonl: `FORMAT`"},
			&ucli.StringFlag{Name: "cluster", Usage: "the `NAME` of the pool in an export", Value: "roost"}),
	}
}

func printSacct(c *frame.Invocation) error {
	q, err := newQuery(c, query.Attempts)
	if err != nil {
		return err
	}
	if len(c.Args) > 0 {
		id, err := roost.ParseJobID(c.Args[0], "")
		if err != nil {
			return err
		}
		if id.Host == "" {
			return frame.UsageErrorf("job %s: write its whole id, as in %s.host", c.Args[0], c.Args[0])
		}
		q.Job, q.Host = id.Seq, id.Host
	}
	if format := c.StringFlag("export"); format != "" {
		return exportAttempts(c, q, format)
	}
	columns, err := sacctColumns(c.StringFlag("format"))
	if err != nil {
		return err
	}
	var lines []query.AttemptLine
	if err := ask(c, q, func(l *query.AttemptLine) error { lines = append(lines, *l); return nil }); err != nil {
		return err
	}
	if !c.Flag("parsable") || c.WantsJSON() {
		return printLines(c, "attempt", columns, lines)
	}
	if !c.Flag("noheader") {
		var heads []string
		for _, col := range columns {
			heads = append(heads, col.head)
		}
		fmt.Fprintln(c.Stdout, strings.Join(heads, "|"))
	}
	for i := range lines {
		var fields []string
		for _, col := range columns {
			text := document.PrintableText(col.value(&lines[i]))
			fields = append(fields, strings.ReplaceAll(text, "|", "?"))
		}
		fmt.Fprintln(c.Stdout, strings.Join(fields, "|"))
	}
	return nil
}

func sacctColumns(format string) (columns []column[query.AttemptLine], err error) {
	all := sacctFields()
	for _, name := range strings.FieldsFunc(format, func(r rune) bool { return r == ',' || r == ' ' }) {
		i := slices.IndexFunc(all, func(col column[query.AttemptLine]) bool {
			return strings.EqualFold(col.head, name)
		})
		if i < 0 {
			var names []string
			for _, col := range all {
				names = append(names, col.head)
			}
			return nil, frame.UsageErrorf("--format: there is no field %q; there is %s", name,
				strings.Join(names, ", "))
		}
		columns = append(columns, all[i])
	}
	return columns, nil
}

func sacctFields() []column[query.AttemptLine] {
	type line = query.AttemptLine
	return []column[line]{
		{"JobID", false, func(l *line) string { return taskName(l) }},
		{"JobName", false, func(l *line) string { return l.Job.Name }},
		{"User", false, func(l *line) string { return l.Job.Owner }},
		{"Group", false, func(l *line) string { return l.Job.UnixGroup }},
		{"Account", false, func(l *line) string { return l.Job.Project }},
		{"Partition", false, func(l *line) string { return l.Job.Queue }},
		{"QOS", false, func(l *line) string { return l.Job.Band.String() }},
		{"Attempt", true, func(l *line) string { return fmt.Sprint(l.Attempt.Attempt) }},
		{"NodeList", false, func(l *line) string { return l.Attempt.Node }},
		{"State", false, func(l *line) string {
			return sacct.State(&accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job})
		}},
		{"ExitCode", false, func(l *line) string { return fmt.Sprintf("%d:%d", l.Attempt.ExitCode, l.Attempt.Signal) }},
		{"Submit", false, func(l *line) string { return utc(l.Job.Submitted) }},
		{"Eligible", false, func(l *line) string { return utc(l.Job.Eligible) }},
		{"Start", false, func(l *line) string { return utc(l.Attempt.Started) }},
		{"End", false, func(l *line) string { return utc(l.Attempt.Ended) }},
		{"Elapsed", true, func(l *line) string { return clock(l.Attempt.Wall) }},
		{"Suspended", true, func(l *line) string { return clock(l.Attempt.Suspended) }},
		{"Planned", true, func(l *line) string { return clock(int64(max(l.Attempt.Started-l.Job.Eligible, 0))) }},
		{"Timelimit", true, func(l *line) string { return clock(l.Job.Walltime) }},
		{"TotalCPU", true, func(l *line) string { return clock(l.Attempt.UserCPU + l.Attempt.SystemCPU) }},
		{"CPUTime", true, func(l *line) string { return clock(l.Attempt.Wall * int64(l.Attempt.Held.CPU) / 1000) }},
		{"AllocCPUS", true, func(l *line) string { return l.Attempt.Held.CPU.String() }},
		{"ReqMem", true, func(l *line) string { return l.Attempt.Held.Memory.String() }},
		{"MaxRSS", true, func(l *line) string { return l.Attempt.Peak.Memory.String() }},
		{"Restarts", true, func(l *line) string { return fmt.Sprint(max(l.Attempt.Attempt-1, 0)) }},
		{"WorkDir", false, func(l *line) string { return l.Job.WorkDir }},
		{"Reason", false, func(l *line) string { return l.Attempt.Reason }},
	}
}

// taskName is the id of a task as people know it.
func taskName(l *query.AttemptLine) string {
	id := roost.JobID{Seq: l.Job.Seq, Host: l.Job.Host}
	if l.Job.Array || l.Job.Tasks > 1 {
		return id.Task(l.Attempt.Index).String()
	}
	return id.String()
}
