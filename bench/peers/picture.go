package main

import (
	"io"

	"github.com/roost-batch/roost/internal/plot"
)

// picture draws a chart for each unit, with a bar for each system, on a scale of powers of ten.
func (r *report) picture(w io.Writer) error {
	var charts []plot.Chart
	for _, kind := range []struct {
		unit
		title, axis string
		divide      float64
	}{
		{seconds, "How long it takes (less is better)", "milliseconds", 1e-3},
		{perSecond, "How many in a second (more is better)", "a second", 1},
		{bytesOf, "Memory of the central daemons, and beside a running job (less is better)", "MiB", 1 << 20},
	} {
		if c := r.chart(kind.unit, kind.divide); len(c.X.Names) > 0 {
			c.Title, c.Y.Label = kind.title, kind.axis
			charts = append(charts, c)
		}
	}
	if len(charts) == 0 {
		return nil // nothing could be measured
	}
	return plot.Write(w, charts...)
}

// chart has all lines of one unit.
func (r *report) chart(u unit, divide float64) plot.Chart {
	c := plot.Chart{Y: plot.Axis{Log: true}}
	for _, s := range r.Systems {
		c.Series = append(c.Series, plot.Series{Name: title(s), Kind: plot.Bars})
	}
	for _, l := range r.Lines {
		if l.Unit != u {
			continue
		}
		place := float64(len(c.X.Names))
		c.X.Names = append(c.X.Names, l.Label)
		for i, s := range r.Systems {
			if m := l.Cells[s].Median; m > 0 { // what grew by nothing has no logarithm
				c.Series[i].Points = append(c.Series[i].Points, plot.Point{X: place, Y: m / divide})
			}
		}
	}
	return c
}
