package view

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// RateList is the document of roost rate.
type RateList struct {
	Version int              `json:"v"`
	Rates   []query.RateLine `json:"rates"`
}

// ShowRates shows what an hour of resources costs.
func ShowRates(c *route.Call) (any, error) {
	lines, err := askAccounts[query.RateLine](c, query.Query{Report: query.Rates}, reportPatience)
	return RateList{document.Version, listed(lines)}, err
}

// MonthList is the document of roost statement months.
type MonthList struct {
	Version int               `json:"v"`
	Months  []query.MonthLine `json:"months"`
}

// ShowMonths shows which months are closed.
func ShowMonths(c *route.Call) (any, error) {
	lines, err := askAccounts[query.MonthLine](c, query.Query{Report: query.Months}, reportPatience)
	return MonthList{document.Version, listed(lines)}, err
}

// AdjustmentList is the document of roost adjustment.
type AdjustmentList struct {
	Version     int                    `json:"v"`
	Adjustments []query.AdjustmentLine `json:"adjustments"`
}

// ShowAdjustments shows what administrators added to the statements of a month.
func ShowAdjustments(c *route.Call) (any, error) {
	lines, err := askMonth[query.AdjustmentLine](c, query.Adjustments)
	return AdjustmentList{document.Version, lines}, err
}

// BudgetList is the document of roost budget.
type BudgetList struct {
	Version int                `json:"v"`
	Budgets []query.BudgetLine `json:"budgets"`
}

// ShowBudgets shows the budgets of a month, and what is spent of them.
func ShowBudgets(c *route.Call) (any, error) {
	lines, err := askMonth[query.BudgetLine](c, query.Budgets)
	return BudgetList{document.Version, lines}, err
}

// StatementList is the document of roost statement. As rows it is the lines that the
// command prints as CSV.
type StatementList struct {
	Version    int                       `json:"v"`
	Statements []query.StatementDocument `json:"statements"`

	Filter StatementFilter `json:"-"`
}

// StatementFilter is what the address of statements says.
type StatementFilter struct {
	Month  string
	Before string // the month before, and the one after
	After  string
	All    bool
	Kind   string // of the payer: project, group or user; empty: none is named
	Name   string // of the payer
}

// RowList returns the rows of all statements.
func (l StatementList) RowList() route.RowTable {
	all := []query.StatementRow{}
	for i := range l.Statements {
		all = append(all, l.Statements[i].Rows()...)
	}
	columns := reporttable.Statements()
	return route.RowTable{Rows: all, Heads: reporttable.Heads(columns), Cells: func(i int) ([]string, error) {
		return reporttable.Cells(columns, &all[i]), nil
	}}
}

// ShowStatements shows what was charged for a month. The page has the user's own unless
// it names a payer or asks for all.
func ShowStatements(c *route.Call) (any, error) {
	q, err := monthQuery(c, query.Statements)
	if err != nil {
		return nil, err
	}
	l := StatementList{Version: document.Version, Filter: StatementFilter{All: c.QueryValue("all") == "1",
		Kind: c.QueryValue("kind"), Name: c.QueryValue("name")}}
	m := accounting.MonthOf(q.From)
	l.Filter.Month, l.Filter.Before, l.Filter.After = m.String(), (m - 1).String(), (m + 1).String()
	if c.IsPage && q.Payer == nil && !l.Filter.All {
		q.Owner = query.Self
	}
	lines, err := askAccounts[query.StatementDocument](c, q, reportPatience)
	l.Statements = listed(lines)
	return l, err
}

// listed makes a list that is written as one, even if it is empty.
func listed[T any](lines []T) []T {
	if lines == nil {
		return []T{}
	}
	return lines
}

// askMonth asks for a report of the month and payer that the address says.
func askMonth[T any](c *route.Call, report string) ([]T, error) {
	q, err := monthQuery(c, report)
	if err != nil {
		return nil, err
	}
	lines, err := askAccounts[T](c, q, reportPatience)
	return listed(lines), err
}

func monthQuery(c *route.Call, report string) (q query.Query, err error) {
	m, err := monthOf(c, "month", thisMonth())
	if err != nil {
		return q, err
	}
	q = query.Query{Report: report, From: m.Start(), To: m.End()}
	q.Payer, err = payerOf(c)
	return q, err
}

func thisMonth() accounting.Month { return accounting.MonthOf(accounting.MillisOf(time.Now())) }

// monthOf reads a month of the address, which is otherwise if it says none.
func monthOf(c *route.Call, name string, otherwise accounting.Month) (accounting.Month, error) {
	text := c.QueryValue(name)
	if text == "" {
		return otherwise, nil
	}
	m, err := accounting.ParseMonth(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: write it as 2026-03", name, roost.Invalid)
	}
	return m, nil
}

// payerOf reads who pays: project, group or user of the address, or kind and name of the
// page's form. nil: it names nobody.
func payerOf(c *route.Call) (*query.Payer, error) {
	p := query.Payer{Project: c.QueryValue("project"), Group: c.QueryValue("group"), User: c.QueryValue("user")}
	if name := c.QueryValue("name"); c.IsPage && name != "" {
		switch kind := c.QueryValue("kind"); kind {
		case "project":
			p.Project = name
		case "group":
			p.Group = name
		case "user":
			p.User = name
		default:
			return nil, fmt.Errorf("kind %.40q: %w: it is project, group or user", kind, roost.Invalid)
		}
	}
	if p == (query.Payer{}) {
		return nil, nil
	}
	return &p, p.Check()
}
