package accounts

import (
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// UsageCommand returns roost usage: what jobs held and used over time.
func UsageCommand() *frame.Command {
	return &frame.Command{
		Name: "usage", Group: frame.GroupSee, Summary: "what your jobs held and used over time", MaxOperands: 0,
		Run: printUsage,
		Description: "Prints what your jobs held and used, in core-hours and GPU-hours, from the accounts of the " +
			"pool. Time counts in the hours in which a job ran. Administrators see all users. With --task it prints " +
			"what one task used over time, or a job's tasks together, also while they run.",
		Examples: []frame.Example{
			{Line: "roost usage --since 7d", Description: "what you used within the last week"},
			{Line: "roost usage --task 12[3]", Description: "CPU and memory of a task, in windows of five minutes"},
			{Line: "roost usage --month 2026-03 --all --by group,owner", Description: "March, by group and user"},
		},
		Flags: append(rangeFlags("30d"),
			&ucli.StringSliceFlag{Name: "by", Usage: "a line for each `NAME`: owner, group, project, band, queue"},
			&ucli.StringFlag{Name: "task", Usage: "what the task or job `ID` used over time, instead of sums"},
			&ucli.BoolFlag{Name: "by-end", Usage: "count all of an attempt when it ended, as XDMoD does"}),
	}
}

func printUsage(c *frame.Invocation) error {
	if id := c.StringFlag("task"); id != "" {
		return printTaskUsage(c, id)
	}
	q, err := newQuery(c, query.Usage)
	if err != nil {
		return err
	}
	for _, text := range c.StringsFlag("by") {
		q.By = append(q.By, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	if len(q.By) == 0 {
		q.By = []string{"owner"}
	}
	q.ByEnd = c.Flag("by-end")
	var lines []query.UsageLine
	if err := ask(c, q, func(l *query.UsageLine) error { lines = append(lines, *l); return nil }); err != nil {
		return err
	}
	return printLines(c, "usage", fromReport(reporttable.Usage(q.By)), lines)
}
