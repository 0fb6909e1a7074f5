package main

import (
	"io"

	"github.com/roost-batch/roost/internal/plot"
)

// drawCharts draws a chart for each unit, with separate ones for milliseconds and
// seconds. Each system has a bar, on a logarithmic scale.
func (r *comparisonReport) drawCharts(w io.Writer) error {
	var charts []plot.Chart
	for _, kind := range []struct {
		title, axis string
		has         func(figureLine) bool
		divide      float64
	}{
		{"How long it takes (less is better)", "milliseconds", func(l figureLine) bool {
			return l.Unit == unitSeconds && l.maxMedian() < 1
		}, 1e-3},
		{"How long it takes (less is better)", "seconds", func(l figureLine) bool {
			return l.Unit == unitSeconds && l.maxMedian() >= 1
		}, 1},
		{"How many in a second (more is better)", "a second", func(l figureLine) bool {
			return l.Unit == unitPerSecond
		}, 1},
		{"Memory of the central daemons, and beside a running job (less is better)", "MiB", func(l figureLine) bool {
			return l.Unit == unitBytes
		}, 1 << 20},
	} {
		if c := r.newChart(kind.has, kind.divide); len(c.X.Names) > 0 {
			c.Title, c.Y.Label = kind.title, kind.axis
			charts = append(charts, c)
		}
	}
	if len(charts) == 0 {
		return nil // nothing could be measured
	}
	return plot.Write(w, charts...)
}

// maxMedian returns the largest median of a line.
func (l figureLine) maxMedian() (most float64) {
	for _, c := range l.Cells {
		most = max(most, c.Median)
	}
	return most
}

// newChart returns a chart of the lines that has selects.
func (r *comparisonReport) newChart(has func(figureLine) bool, divide float64) plot.Chart {
	c := plot.Chart{Y: plot.ChartAxis{Log: true}}
	for _, s := range r.Systems {
		c.Series = append(c.Series, plot.ChartSeries{Name: systemTitle(s), Kind: plot.Bars})
	}
	for _, l := range r.Lines {
		if !has(l) {
			continue
		}
		place := float64(len(c.X.Names))
		c.X.Names = append(c.X.Names, l.Label)
		for i, s := range r.Systems {
			if m := l.Cells[s].Median; m > 0 { // a value of zero has no logarithm
				c.Series[i].Points = append(c.Series[i].Points, plot.DataPoint{X: place, Y: m / divide})
			}
		}
	}
	return c
}
