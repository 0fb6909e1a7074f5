package accounts

import (
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
)

const reportNames = "ends|waits|sizes|capacity|efficiency|timeline|bands|waste|reconcile|sources"

// ReportCommand returns roost report: reports about the pool.
func ReportCommand() *frame.Command {
	return &frame.Command{
		Name: "report", Group: frame.GroupSee, Summary: "reports from the accounts of the pool",
		Synopsis:    reportNames,
		MinOperands: 1, MaxOperands: 1,
		Run: printReport,
		Description: "Prints a report from the accounts of the pool: ends by cause, waiting times, sizes of jobs, " +
			"what the machines had and gave, what was asked for and not used, what each band held by day, " +
			"how the accounts compare with the negotiator's ledger, and how far each schedd's feed is read.",
		Examples: []frame.Example{
			{Line: "roost report ends --since 7d", Description: "why your attempts ended within the last week"},
			{Line: "roost report capacity --month 2026-03 --csv", Description: "what the machines gave in March"},
		},
		Flags: append(rangeFlags("30d"),
			&ucli.BoolFlag{Name: "detail", Usage: "a line for each user, or for each hour"}),
	}
}

func printReport(c *frame.Invocation) error {
	name := c.Args[0]
	q, err := newQuery(c, name)
	if err != nil {
		return err
	}
	switch detail := c.Flag("detail"); {
	case detail && (name == query.Timeline || name == query.Bands):
		q.Step = query.StepHour
	case detail:
		q.By = []string{"owner"}
	}
	switch name {
	case query.Ends:
		return printAnswer(c, q, reporttable.Ends())
	case query.Waits:
		return printAnswer(c, q, reporttable.Waits())
	case query.Sizes:
		return printAnswer(c, q, reporttable.Sizes())
	case query.Capacity:
		return printAnswer(c, q, reporttable.Capacity())
	case query.Efficiency:
		return printAnswer(c, q, reporttable.Efficiency())
	case query.Timeline, query.Bands:
		return printAnswer(c, q, reporttable.Points())
	case query.Waste:
		return printAnswer(c, q, reporttable.Waste())
	case query.Reconcile:
		return printAnswer(c, q, reporttable.Reconcile())
	case query.Sources:
		return printAnswer(c, q, reporttable.Sources(c.Now()))
	}
	return frame.UsageErrorf("there is no report %q; there is %s", name, reportNames)
}

// printAnswer asks and prints.
func printAnswer[T any](c *frame.Invocation, q *query.Query, columns []reporttable.Column[T]) error {
	var lines []T
	if err := ask(c, q, func(l *T) error { lines = append(lines, *l); return nil }); err != nil {
		return err
	}
	return printLines(c, strings.TrimSuffix(q.Report, "s"), fromReport(columns), lines)
}
