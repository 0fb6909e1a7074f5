package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// AccountsReport is a report of roost report, with the lines that the command prints as
// JSON.
type AccountsReport struct {
	Version int    `json:"v"`
	Report  string `json:"report"`
	Since   string `json:"since"`
	Until   string `json:"until"`
	Lines   []any  `json:"lines"`

	lines []json.RawMessage
	text  reportText
}

// RowList returns the lines. As CSV they are what the command prints.
func (r AccountsReport) RowList() route.RowTable {
	return route.RowTable{Rows: r.Lines, Heads: r.text.heads, Cells: func(i int) ([]string, error) {
		return r.text.cells(r.lines[i])
	}}
}

// reportText is a report as the command prints it.
type reportText struct {
	heads []string
	cells func(line []byte) ([]string, error)
}

func reportTextOf[T any](columns []reporttable.Column[T]) reportText {
	return reportText{reporttable.Heads(columns), func(line []byte) ([]string, error) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%w: the answer of the accountant cannot be read: %w", roost.Internal, err)
		}
		return reporttable.Cells(columns, &v), nil
	}}
}

// reportTexts are the reports of roost report.
func reportTexts(now time.Time) map[string]reportText {
	return map[string]reportText{
		query.Ends: reportTextOf(reporttable.Ends()), query.Waits: reportTextOf(reporttable.Waits()),
		query.Sizes: reportTextOf(reporttable.Sizes()), query.Capacity: reportTextOf(reporttable.Capacity()),
		query.Efficiency: reportTextOf(reporttable.Efficiency()), query.Timeline: reportTextOf(reporttable.Points()),
		query.Bands: reportTextOf(reporttable.Points()), query.Waste: reportTextOf(reporttable.Waste()),
		query.Sources: reportTextOf(reporttable.Sources(now)), query.Reconcile: reportTextOf(reporttable.Reconcile()),
	}
}

// ShowReport shows a report from the accounts of the pool.
func ShowReport(c *route.Call) (any, error) {
	name := c.PathValue("report")
	now := time.Now()
	all := reportTexts(now)
	text, known := all[name]
	if !known {
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("report %.40q: %w: there is %s", name, roost.NotFound, strings.Join(names, ", "))
	}
	q, err := reportQuery(c, name, now)
	if err != nil {
		return nil, err
	}
	r := AccountsReport{Version: document.Version, Report: name, Lines: []any{},
		Since: document.Timestamp(int64(q.From) * 1e6), Until: document.Timestamp(int64(q.To) * 1e6)}
	lines, err := askAccounts[json.RawMessage](c, q, reportPatience)
	r.lines, r.text = lines, text
	for i := range lines {
		line, err := document.SnakeDocument(lines[i])
		if err != nil {
			return nil, fmt.Errorf("%w: the answer of the accountant cannot be read: %w", roost.Internal, err)
		}
		r.Lines = append(r.Lines, line)
	}
	return r, err
}

// reportQuery reads the address of a report, with the parameters of the command.
func reportQuery(c *route.Call, name string, now time.Time) (q query.Query, err error) {
	_, q, err = usageQuery(c, now)
	if err != nil {
		return q, err
	}
	q.Report, q.By, q.Owner = name, nil, c.QueryValue("user")
	q.Group, q.Project, q.Queue, q.Band = c.QueryValue("group"), c.QueryValue("project"), c.QueryValue("queue"),
		c.QueryValue("band")
	if q.Owner == "" && c.QueryValue("all") != "1" && query.IsOwn(name) {
		q.Owner = query.Self
	}
	switch detail := c.QueryValue("detail") == "1"; {
	case detail && (name == query.Timeline || name == query.Bands):
		q.Step = query.StepHour
	case detail:
		q.By = []string{"owner"}
	}
	if text := c.QueryValue("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > query.MaxLimit {
			return q, fmt.Errorf("limit: %w: it is a number from 1 to %d", roost.Invalid, query.MaxLimit)
		}
	}
	return q, nil
}
