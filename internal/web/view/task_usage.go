package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// JobUsage is what a task used over time, or all tasks of a job together.
type JobUsage struct {
	document.TaskUsage

	Job document.Job `json:"-"`
}

// The bounds of how many windows are shown. Of more, neighbours are joined.
const (
	defaultWindows = 576 // two days
	maxWindows     = 2000
	chartWindows   = 240
)

// ShowJobUsage shows what a job or task used over time.
func ShowJobUsage(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	most := defaultWindows
	if c.IsPage {
		most = chartWindows
	}
	if text := c.QueryValue("windows"); text != "" {
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > maxWindows {
			return nil, fmt.Errorf("windows: %w: it is a number from 1 to %d", roost.Invalid, maxWindows)
		}
	}
	row, err := findRow(c, id, &wire.QueryRequest{Tasks: isTaskID(id), Ads: true, Windows: true})
	if err != nil {
		return nil, err
	}
	u := jobUsageOf(c, row, most)
	u.Hints, err = hintsOf(c, row)
	return u, err
}

// accountsPatience is how long a page waits for what the accounts have of a job.
const accountsPatience = 2 * time.Second

// jobUsageOf joins what a row has with what the accounts have. Without the accounts it
// says so.
func jobUsageOf(c *route.Call, row *wire.JobStatus, most int) JobUsage {
	owner := ""
	if row.GetOwner() == c.Session.User {
		owner = query.Self
	}
	var stored []query.WindowLine
	q, err := query.WindowsOf(row.GetId(), row.GetTaskNumber(), row.GetState() != "", owner)
	if err == nil && row.GetStarted() != 0 {
		stored, err = askAccounts[query.WindowLine](c, q, accountsPatience)
	}
	u := JobUsage{TaskUsage: document.TaskUsageOf(row, stored), Job: document.JobOf(row, isTaskID(row.GetId()))}
	if err != nil && !errors.Is(err, roost.NotFound) { // that it does not know the job, or only its owner may see it
		u.Missing = err.Error()
	}
	u.Fold(most)
	return u
}

// askAccounts asks the accountant for the lines of a report.
func askAccounts[T any](c *route.Call, q query.Query, patience time.Duration) (lines []T, err error) {
	err = eachAccountsLine(c, q, patience, func(l *T) error {
		lines = append(lines, *l)
		return nil
	})
	return lines, err
}

// eachAccountsLine asks the accountant for a report and calls f with each line as it
// comes.
func eachAccountsLine[T any](c *route.Call, q query.Query, patience time.Duration, f func(*T) error) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		stream, err := s.Accounting(ctx, &wire.AccountingQuery{Query: text})
		return drain(stream, err, func(piece *wire.AccountingPiece) error {
			for line := range bytes.Lines(piece.GetLines()) {
				var l T
				if err := json.Unmarshal(line, &l); err != nil {
					return fmt.Errorf("%w: the answer of the accountant cannot be read: %w", roost.Internal, err)
				}
				if err := f(&l); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// maxSamples bounds how many tasks of a job are looked at for hints, as for roost show.
const maxSamples = 5000

// hintsOf says what to request next time, in the words of roost show. The row has its ad.
func hintsOf(c *route.Call, row *wire.JobStatus) ([]string, error) {
	walltime := document.AdWalltime(row.GetAd())
	switch {
	case row.GetState() != "" && !document.IsFinal(row), row.GetState() == "" &&
		row.GetCounts()[roost.Completed.String()] == 0:
		return nil, nil
	case row.GetState() != "":
		return document.RightSize([]document.TaskSample{document.TaskSampleOf(row, walltime)}), nil
	}
	var samples []document.TaskSample
	_, err := queryPool(c, &wire.PoolQuery{Query: &wire.QueryRequest{Selection: &wire.Selection{
		Selectors: []string{row.GetId()}, States: []string{roost.Completed.String()}}, History: true, Tasks: true,
		Limit: maxSamples}}, func(s *wire.JobStatus) error {
		samples = append(samples, document.TaskSampleOf(s, walltime))
		return nil
	})
	return document.RightSize(samples), err
}

// IsTask reports whether the usage is that of one task.
func (u JobUsage) IsTask() bool { return u.Job.Index != nil || !u.Job.Array && u.Job.Tasks <= 1 }

// Charts are the charts of the page: each resource against what was asked for.
func (u JobUsage) Charts() []chart.Chart {
	if len(u.Windows) == 0 {
		return nil
	}
	all := []chart.Chart{
		u.chart("Cores kept busy", chart.Number, u.Request.CPUs,
			usageSeries{"on average", func(w *document.UsageWindow) float64 { return w.CPUs }},
			usageSeries{"at most", func(w *document.UsageWindow) float64 { return w.CPUsMax }}),
		u.chart("Memory", chart.Bytes, float64(u.Request.Memory),
			usageSeries{"at most", func(w *document.UsageWindow) float64 { return float64(w.Memory) }}),
	}
	if u.Request.GPUs > 0 {
		all = append(all, u.chart("GPUs kept busy", chart.Number, float64(u.Request.GPUs),
			usageSeries{"on average", func(w *document.UsageWindow) float64 { return w.GPUs }}),
			u.chart("GPU memory", chart.Bytes, float64(u.Request.GPUMem*u.Request.GPUs),
				usageSeries{"at most", func(w *document.UsageWindow) float64 { return float64(w.GPUMemory) }}))
	}
	moved := int64(0)
	for i := range u.Windows {
		moved += u.Windows[i].Read + u.Windows[i].Written
	}
	if moved > 0 {
		all = append(all, u.chart("Disk, for each window", chart.Bytes, 0,
			usageSeries{"read", func(w *document.UsageWindow) float64 { return float64(w.Read) }},
			usageSeries{"written", func(w *document.UsageWindow) float64 { return float64(w.Written) }}))
	}
	return all
}

// usageSeries is a line of a chart.
type usageSeries struct {
	name  string
	value func(*document.UsageWindow) float64
}

func (u JobUsage) chart(title string, unit chart.Unit, asked float64, series ...usageSeries) chart.Chart {
	c := chart.Chart{Title: title, Unit: unit, Step: time.Duration(u.Window) * time.Second}
	if u.IsTask() && asked > 0 {
		c.Bound, c.Label = asked, "asked for "+unit.Text(asked)
	}
	for i := range u.Windows {
		c.Times = append(c.Times, u.Windows[i].Time())
	}
	for _, s := range series {
		line := chart.Series{Name: s.name}
		for i := range u.Windows {
			line.Values = append(line.Values, s.value(&u.Windows[i]))
		}
		c.Series = append(c.Series, line)
	}
	return c
}
