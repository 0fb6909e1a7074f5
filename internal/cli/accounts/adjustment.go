package accounts

import (
	"crypto/rand"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// AdjustmentCommand returns roost adjustment: what administrators add to statements.
func AdjustmentCommand() *frame.Command {
	return &frame.Command{
		Name: "adjustment", Group: frame.GroupAdmin, Summary: "show and add adjustments of statements",
		Synopsis: "[list | add]", MaxOperands: -1, Run: runBranch(adjustmentBranches), Branches: adjustmentBranches,
		Description: "Lists the adjustments of a month, or adds one to the statement of an open month. A negative " +
			"amount " +
			"is a refund. Adjustments are never changed or removed: add one the other way.",
		Examples: []frame.Example{
			{Line: "roost adjustment --month 2026-03", Description: "the adjustments of March"},
			{Line: `roost adjustment add --project ocean --amount -12.50 --reason "node 7 was broken"`,
				Description: "a refund on this month's statement"},
		},
		Flags: append(payerFlags(),
			&ucli.StringFlag{Name: "month", Usage: "of the statement of this `MONTH`; the present one by default"},
			&ucli.StringFlag{Name: "amount", Usage: "`AMOUNT` in units of charge"},
			&ucli.StringFlag{Name: "reason", Usage: "why, in words for the payer: `TEXT`"},
			&ucli.StringFlag{Name: "request", Usage: "an `ID`: the same request again adds nothing"},
			frame.JSONFlag()),
	}
}

func adjustmentBranches() []frame.Subcommand {
	return []frame.Subcommand{
		{Name: "list", Summary: "show the adjustments of a month", Flags: payerNames("month"), Run: listAdjustments},
		{Name: "add", Summary: "add an adjustment", Flags: payerNames("month", "amount", "reason", "request"),
			Run: addAdjustment},
	}
}

func listAdjustments(c *frame.Invocation, _ []string) error {
	type line = query.AdjustmentLine
	m, err := monthFlag(c, "month", thisMonth(c))
	if err != nil {
		return err
	}
	q := &query.Query{Report: query.Adjustments, From: m.Start(), To: m.End()}
	if q.Payer, err = payerOf(c); err != nil {
		return err
	}
	lines, err := askAll[line](c, q)
	if err != nil {
		return err
	}
	return printTable(c, "adjustments", "there are no adjustments of "+m.String(), []column[line]{
		{"id", true, func(l *line) string { return fmt.Sprint(l.ID) }},
		{"payer", false, func(l *line) string { return l.Payer.String() }},
		{"amount", true, func(l *line) string { return l.Amount.String() }},
		{"reason", false, func(l *line) string { return l.Reason }},
		{"by", false, func(l *line) string { return l.By }},
		{"at", false, func(l *line) string { return day(l.Set) }},
	}, lines)
}

func addAdjustment(c *frame.Invocation, _ []string) error {
	p, err := requirePayer(c)
	if err != nil {
		return err
	}
	a := &query.AdjustmentLine{Payer: p, Reason: c.StringFlag("reason")}
	if a.Amount, err = unitsFlag(c, "amount"); err != nil {
		return err
	}
	if a.Amount == 0 || a.Reason == "" {
		return frame.UsageErrorf("an adjustment needs --amount and --reason")
	}
	m, err := monthFlag(c, "month", thisMonth(c))
	if err != nil {
		return err
	}
	a.Month = query.Month(m)
	request := c.StringFlag("request")
	if request == "" {
		request = rand.Text()
	}
	return makeChange(c, &query.Change{Request: request, Adjustment: a}, "adjustment",
		fmt.Sprintf("the statement of %s for %v is adjusted by %s", printable(p.String()), m, a.Amount))
}
