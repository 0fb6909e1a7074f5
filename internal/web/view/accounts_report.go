package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
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

	columns [][]string
}

// RowList returns the lines.
func (r AccountsReport) RowList() (rows any, columns [][]string) { return r.Lines, r.columns }

// reportColumns are the reports of roost report, with the columns of their lines.
func reportColumns() map[string][][]string {
	return map[string][][]string{
		query.Ends: route.Columns[accounting.EndLine](), query.Waits: route.Columns[accounting.WaitLine](),
		query.Sizes:      route.Columns[accounting.SizeLine](),
		query.Capacity:   route.Columns[accounting.CapacityLine](),
		query.Efficiency: route.Columns[accounting.EfficiencyLine](),
		query.Timeline:   route.Columns[query.PointLine](), query.Bands: route.Columns[query.PointLine](),
		query.Waste: route.Columns[query.WasteLine](), query.Sources: route.Columns[query.SourceLine](),
		query.Reconcile: route.Columns[query.ReconcileLine](),
	}
}

// ShowReport shows a report from the accounts of the pool.
func ShowReport(c *route.Call) (any, error) {
	name := c.PathValue("report")
	all := reportColumns()
	columns, known := all[name]
	if !known {
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("report %.40q: %w: there is %s", name, roost.NotFound, strings.Join(names, ", "))
	}
	q, err := reportQuery(c, name, time.Now())
	if err != nil {
		return nil, err
	}
	r := AccountsReport{Version: document.Version, Report: name, Lines: []any{},
		Since: document.Timestamp(int64(q.From) * 1e6), Until: document.Timestamp(int64(q.To) * 1e6)}
	for _, path := range columns {
		snake := make([]string, len(path))
		for i := range path {
			snake[i] = document.SnakeCase(path[i])
		}
		r.columns = append(r.columns, snake)
	}
	lines, err := askAccounts[json.RawMessage](c, q, reportPatience)
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
