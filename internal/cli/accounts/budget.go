package accounts

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// BudgetCommand returns roost budget: how much projects, groups and users may spend.
func BudgetCommand() *frame.Command {
	return &frame.Command{
		Name: "budget", Group: frame.GroupAdmin, Summary: "show and set how much projects, groups and users may spend",
		Synopsis: "[list | set]", MaxOperands: -1, Run: runBranch(budgetBranches), Branches: budgetBranches,
		Description: "Lists the budgets of this month and what is spent of them, or sets one. Of the budgets of a " +
			"payer for a month, the last that was set counts. From 80 % on a budget warns. When a hard one is spent, " +
			"jobs of its payer are refused when they are submitted; jobs that are there run on.",
		Examples: []frame.Example{
			{Line: "roost budget", Description: "all budgets; your own, if you are no administrator"},
			{Line: "roost budget set --project ocean --amount 5000 --first 2026-01 --last 2026-12",
				Description: "a budget for a year that warns"},
			{Line: "roost budget set --user ann --amount 100 --hard", Description: "for this month, and refuses jobs"},
			{Line: "roost budget set --user ann --amount none", Description: "take it away"},
		},
		Flags: append(payerFlags(),
			&ucli.StringFlag{Name: "amount", Usage: "`AMOUNT` in units of charge, or none"},
			&ucli.StringFlag{Name: "first", Usage: "its first `MONTH`; this one by default"},
			&ucli.StringFlag{Name: "last", Usage: "its last `MONTH`; the first one by default"},
			&ucli.BoolFlag{Name: "hard", Usage: "refuse jobs when it is spent"},
			&ucli.StringFlag{Name: "month", Usage: "the budgets of this `MONTH`"},
			frame.JSONFlag()),
	}
}

func budgetBranches() []frame.Subcommand {
	return []frame.Subcommand{
		{Name: "list", Summary: "show budgets and what is spent", Flags: payerNames("month"), Run: listBudgets},
		{Name: "set", Summary: "set a budget", Flags: payerNames("amount", "first", "last", "hard"), Run: setBudget},
	}
}

func listBudgets(c *frame.Invocation, _ []string) error {
	type line = query.BudgetLine
	m, err := monthFlag(c, "month", thisMonth(c))
	if err != nil {
		return err
	}
	q := &query.Query{Report: query.Budgets, From: m.Start(), To: m.End()}
	if q.Payer, err = payerOf(c); err != nil {
		return err
	}
	lines, err := askAll[line](c, q)
	if err != nil {
		return err
	}
	return printTable(c, "budgets", "no budgets are set for "+m.String(), []column[line]{
		{"payer", false, func(l *line) string { return l.Payer.String() }},
		{"first", false, func(l *line) string { return l.From.String() }},
		{"last", false, func(l *line) string { return l.To.String() }},
		{"amount", true, func(l *line) string { return l.Amount.String() }},
		{"spent", true, func(l *line) string { return cents(l.Spent) }},
		{"percent", true, func(l *line) string { return reporttable.Percent(int64(l.Spent), int64(l.Amount)) }},
		{"state", false, budgetState},
		{"set_by", false, func(l *line) string { return l.By }},
	}, lines)
}

func budgetState(l *query.BudgetLine) string {
	switch {
	case l.Refuses:
		return "refuses jobs"
	case l.Warns:
		return "warns"
	case l.Hard:
		return "hard"
	}
	return "ok"
}

// cents rounds an amount to two decimals.
func cents(u query.Units) string {
	n, half := accounting.MicroUnits(u), query.Cent/2
	if n < 0 {
		half = -half
	}
	return ((n + half) / query.Cent * query.Cent).String()
}

func setBudget(c *frame.Invocation, _ []string) error {
	p, err := requirePayer(c)
	if err != nil {
		return err
	}
	if !c.IsFlagSet("amount") {
		return frame.UsageErrorf("say how much: --amount 100, or none")
	}
	b := &query.BudgetLine{Payer: p, Amount: query.NoBudget, Hard: c.Flag("hard")}
	if c.StringFlag("amount") != "none" {
		if b.Amount, err = unitsFlag(c, "amount"); err != nil {
			return err
		}
	}
	first, err := monthFlag(c, "first", thisMonth(c))
	if err != nil {
		return err
	}
	last, err := monthFlag(c, "last", first)
	if err != nil {
		return err
	}
	if last < first {
		return frame.UsageErrorf("--last: %v is before %v", last, first)
	}
	b.From, b.To = query.Month(first), query.Month(last)
	amount := b.Amount.String()
	if b.Amount == query.NoBudget {
		amount = "none"
	}
	return makeChange(c, &query.Change{Budget: b}, "budget",
		fmt.Sprintf("the budget of %s from %v to %v is %s", printable(p.String()), first, last, amount))
}
