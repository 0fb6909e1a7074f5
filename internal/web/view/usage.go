package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// UsageReport is what jobs held and used over time, from the accounts of the pool.
type UsageReport struct {
	Version int         `json:"v"`
	Since   string      `json:"since"`
	Until   string      `json:"until"`
	By      string      `json:"by"`
	Usage   []UsageLine `json:"usage"`

	Days []UsagePoint `json:"days"` // by day and band
	Ends []UsageEnd   `json:"ends"` // by cause

	Filter   UsageFilter `json:"-"`
	from, to time.Time
	lines    []query.UsageLine
}

// RowList returns the lines. As CSV they are what the command prints.
func (r UsageReport) RowList() route.RowTable {
	columns := reporttable.Usage([]string{r.By})
	return route.RowTable{Rows: r.Usage, Heads: reporttable.Heads(columns), Cells: func(i int) ([]string, error) {
		return reporttable.Cells(columns, &r.lines[i]), nil
	}}
}

// UsageFilter is what the address of a report says.
type UsageFilter struct {
	All   bool
	By    string
	Month string // empty: the last Days
	Days  int
}

// UsageLine is one line of a report.
type UsageLine struct {
	Name      string  `json:"name"`
	CoreHours float64 `json:"core_hours"` // held
	CPUHours  float64 `json:"cpu_hours"`  // used
	GPUHours  float64 `json:"gpu_hours"`  // held
	LostHours float64 `json:"lost_core_hours"`
	Ended     int64   `json:"ended"` // attempts
	Failed    int64   `json:"failed"`
	MeanWait  float64 `json:"mean_wait_seconds"`
}

// UsageGroups lists what a report can have a line for.
func UsageGroups() []string { return []string{"owner", "group", "project", "band", "queue"} }

const (
	defaultUsageDays = 30
	maxUsageDays     = 10 * 366
	millisAnHour     = 3.6e6
	reportPatience   = 25 * time.Second
)

// ShowUsage shows what jobs held and used. Without all it is the user's own use.
func ShowUsage(c *route.Call) (any, error) {
	f, q, err := usageQuery(c, time.Now())
	if err != nil {
		return nil, err
	}
	r := UsageReport{Version: document.Version, By: f.By, Filter: f, Usage: []UsageLine{},
		Days: []UsagePoint{}, Ends: []UsageEnd{}, from: q.From.Time(), to: q.To.Time(),
		Since: document.Timestamp(int64(q.From) * 1e6), Until: document.Timestamp(int64(q.To) * 1e6)}
	lines, err := askAccounts[query.UsageLine](c, q, reportPatience)
	r.lines = lines
	for i := range lines {
		r.Usage = append(r.Usage, usageLineOf(&lines[i]))
	}
	if err == nil {
		err = r.addDays(c, q)
	}
	return r, err
}

// addDays adds what was used by day and band, and the ends by cause.
func (r *UsageReport) addDays(c *route.Call, q query.Query) error {
	q.Report, q.By = query.Timeline, nil
	points, err := askAccounts[query.PointLine](c, q, reportPatience)
	if err != nil {
		return err
	}
	for i := range points {
		r.Days = append(r.Days, usagePointOf(&points[i]))
	}
	q.Report = query.Ends
	ends, err := askAccounts[accounting.EndLine](c, q, reportPatience)
	for i := range ends {
		r.Ends = append(r.Ends, usageEndOf(&ends[i]))
	}
	return err
}

// usageQuery reads the address of a report.
func usageQuery(c *route.Call, now time.Time) (f UsageFilter, q query.Query, err error) {
	f = UsageFilter{All: c.QueryValue("all") == "1", By: c.QueryValue("by"), Month: c.QueryValue("month"),
		Days: defaultUsageDays}
	if f.By == "" {
		f.By = "owner"
	}
	if !slices.Contains(UsageGroups(), f.By) {
		return f, q, fmt.Errorf("by %.40q: %w: it is owner, group, project, band or queue", f.By, roost.Invalid)
	}
	if text := c.QueryValue("days"); text != "" {
		if _, err := fmt.Sscan(text, &f.Days); err != nil || f.Days < 1 || f.Days > maxUsageDays {
			return f, q, fmt.Errorf("days: %w: it is a number from 1 to %d", roost.Invalid, maxUsageDays)
		}
	}
	q = query.Query{Report: query.Usage, By: []string{f.By}, From: accounting.MillisOf(now.AddDate(0, 0, -f.Days)),
		To: accounting.MillisOf(now)}
	if f.Month != "" {
		month, err := accounting.ParseMonth(f.Month)
		if err != nil {
			return f, q, err
		}
		q.From, q.To = month.Start(), month.End()
	}
	if !f.All {
		q.Owner = query.Self
	}
	return f, q, nil
}

func usageLineOf(l *query.UsageLine) UsageLine {
	line := UsageLine{CoreHours: float64(l.HeldCPU) / millisAnHour, CPUHours: float64(l.UsedCPU) / millisAnHour,
		GPUHours: float64(l.HeldGPU) / millisAnHour, LostHours: float64(l.LostCPU) / millisAnHour, Ended: l.Ended,
		Failed: l.Failed}
	for _, name := range []string{l.Owner, l.Group, l.Project, l.Band, l.Queue} {
		if name != "" {
			line.Name = name
		}
	}
	if l.Waits > 0 {
		line.MeanWait = float64(l.WaitSum) / float64(l.Waits) / 1000
	}
	return line
}
