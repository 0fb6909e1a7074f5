package accounts

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// StatementCommand returns roost statement: what was charged for a month.
func StatementCommand() *frame.Command {
	return &frame.Command{
		Name: "statement", Group: frame.GroupSee, Summary: "what was charged for a month, and closing months",
		Synopsis: "[list | months | close MONTH]", MaxOperands: -1, Run: runBranch(statementBranches),
		Branches: statementBranches,
		Description: "Prints the statements of a month: what each user's work in each queue and band cost, " +
			"adjustments, " +
			"what was free, and the total. A project pays for its jobs, or else their group, or else their owner. " +
			"You see your own statement and your part of those of your projects and groups; administrators see all. " +
			"A month is closed three days after its end when all is there, or by an administrator; later news about " +
			"it are adjustments of the first open month.",
		Examples: []frame.Example{
			{Line: "roost statement --month 2026-03", Description: "what your work in March cost"},
			{Line: "roost statement --month 2026-03 --project ocean", Description: "the statement of a project"},
			{Line: "roost statement months", Description: "which months are closed"},
			{Line: "roost statement close 2026-03", Description: "close a month before its time"},
		},
		Flags: append(payerFlags(),
			&ucli.StringFlag{Name: "month", Usage: "of this `MONTH`; the present one by default"}, frame.JSONFlag(),
			&ucli.BoolFlag{Name: "csv", Usage: "print comma-separated values with a line of headings"}),
	}
}

func statementBranches() []frame.Subcommand {
	return []frame.Subcommand{
		{Name: "list", Summary: "show the statements of a month", Flags: payerNames("month", "csv"),
			Run: listStatements},
		{Name: "months", Summary: "show which months are closed", Run: listMonths},
		{Name: "close", Summary: "close a month", MinOperands: 1, MaxOperands: 1, OperandNames: "a month, as 2026-03",
			Run: closeMonth},
	}
}

func listStatements(c *frame.Invocation, _ []string) error {
	m, err := monthFlag(c, "month", thisMonth(c))
	if err != nil {
		return err
	}
	q := &query.Query{Report: query.Statements, From: m.Start(), To: m.End()}
	if q.Payer, err = payerOf(c); err != nil {
		return err
	}
	statements, err := askAll[query.StatementDocument](c, q)
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"statements": statements})
	}
	type row = query.StatementRow
	var rows []row
	for i := range statements {
		rows = append(rows, statements[i].Rows()...)
	}
	columns := fromReport(reporttable.Statements())
	if c.Flag("csv") {
		return printCSV(c, columns, rows)
	}
	return printTable(c, "statements", "nothing is charged for "+m.String(), columns, rows)
}

func listMonths(c *frame.Invocation, _ []string) error {
	type line = query.MonthLine
	lines, err := askAll[line](c, &query.Query{Report: query.Months})
	if err != nil {
		return err
	}
	return printTable(c, "months", "nothing is charged yet", []column[line]{
		{"month", false, func(l *line) string { return l.Month.String() }},
		{"state", false, func(l *line) string {
			if l.Closed == 0 {
				return "open"
			}
			return "closed " + day(l.Closed)
		}},
		{"closed_by", false, func(l *line) string { return l.By }},
		{"charges", true, func(l *line) string { return cents(l.Charges) }},
	}, lines)
}

func closeMonth(c *frame.Invocation, args []string) error {
	m, err := accounting.ParseMonth(args[0])
	if err != nil {
		return err
	}
	month := query.Month(m)
	return makeChange(c, &query.Change{Close: &month}, "closed", fmt.Sprintf("%v is closed", m))
}
