package view

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
)

// UsagePoint is what the jobs of a band held and used within a day or an hour.
type UsagePoint struct {
	Begin     string  `json:"begin"`
	Band      string  `json:"band"`
	CoreHours float64 `json:"core_hours"` // held
	CPUHours  float64 `json:"cpu_hours"`  // used
	GPUHours  float64 `json:"gpu_hours"`  // held
	LostHours float64 `json:"lost_core_hours"`
	Started   int64   `json:"started"` // attempts
	Ended     int64   `json:"ended"`
	MeanWait  float64 `json:"mean_wait_seconds"`

	at time.Time
}

// UsageEnd is how many attempts ended for a cause.
type UsageEnd struct {
	Cause      string  `json:"cause"`
	Count      int64   `json:"count"`
	CoreHours  float64 `json:"core_hours"`
	LostHours  float64 `json:"lost_core_hours"`
	SavedHours float64 `json:"saved_core_hours"` // that a checkpoint kept
}

func usagePointOf(l *query.PointLine) UsagePoint {
	p := UsagePoint{
		Begin: document.Timestamp(int64(l.At) * 1e6), Band: l.Band, CoreHours: float64(l.HeldCPU) / millisAnHour,
		CPUHours: float64(l.UsedCPU) / millisAnHour, GPUHours: float64(l.HeldGPU) / millisAnHour,
		LostHours: float64(l.LostCPU) / millisAnHour, Started: l.Started, Ended: l.Ended, at: l.At.Time(),
	}
	if l.Waits > 0 {
		p.MeanWait = float64(l.WaitSum) / float64(l.Waits) / 1000
	}
	return p
}

// maxColumns bounds the steps of a chart of days. Longer ranges have weeks or months.
const maxColumns = 400

// bandChart draws amounts by band, each band an area on those before it.
type bandChart struct {
	chart.Chart
	of map[string]int // series of a band
}

// newBandChart returns an empty chart of a range.
func newBandChart(title string, from, to time.Time, step time.Duration) *bandChart {
	for _, factor := range []time.Duration{7, 5, 12} {
		if to.Sub(from)/step <= maxColumns {
			break
		}
		step *= factor
	}
	b := &bandChart{chart.Chart{Title: title, Step: step}, map[string]int{}}
	for at := from.UTC().Truncate(step); at.Before(to); at = at.Add(step) {
		b.Times = append(b.Times, at)
	}
	return b
}

// add adds an amount to a series, if its time is in the range.
func (b *bandChart) add(name string, area bool, at time.Time, amount float64) {
	if len(b.Times) == 0 || at.Before(b.Times[0]) {
		return
	}
	i := int(at.Sub(b.Times[0]) / b.Step)
	if i >= len(b.Times) {
		return
	}
	n, ok := b.of[name]
	if !ok {
		n = len(b.Series)
		b.of[name] = n
		b.Series = append(b.Series, chart.Series{Name: name, Area: area, Values: make([]float64, len(b.Times))})
	}
	b.Series[n].Values[i] += amount
}

// bandsOf returns the bands of points, the most important first.
func bandsOf(points []UsagePoint) (names []string) {
	for band := roost.MonitoringBand + 1; band > roost.FreeBand; band-- {
		name := (band - 1).String()
		if slices.ContainsFunc(points, func(p UsagePoint) bool { return p.Band == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Charts are the charts of the page: what was held and used, and how long tasks waited.
func (r UsageReport) Charts() []chart.Chart {
	if len(r.Days) == 0 {
		return nil
	}
	held := newBandChart("Core hours a day", r.from, r.to, 24*time.Hour)
	for _, band := range bandsOf(r.Days) {
		for _, p := range r.Days {
			if p.Band == band {
				held.add("held, "+band, true, p.at, p.CoreHours)
			}
		}
	}
	for _, p := range r.Days {
		held.add("used", false, p.at, p.CPUHours)
	}
	if held.Step > 24*time.Hour {
		held.Title = "Core hours"
	}
	return []chart.Chart{held.Chart}
}

func usageEndOf(l *accounting.EndLine) UsageEnd {
	return UsageEnd{Cause: l.Cause.String(), Count: l.Count, CoreHours: float64(l.HeldCPU) / millisAnHour,
		LostHours: float64(l.LostCPU) / millisAnHour, SavedHours: float64(l.SavedCPU) / millisAnHour}
}
