package main

import (
	"io"

	"github.com/roost-batch/roost/internal/plot"
)

// picture draws a chart for each unit, one for what takes milliseconds and one for what takes seconds, with a bar for each system, on a scale of powers of ten.
func (r *report) picture(w io.Writer) error {
	var charts []plot.Chart
	for _, kind := range []struct {
		title, axis string
		has         func(line) bool
		divide      float64
	}{
		{"How long it takes (less is better)", "milliseconds", func(l line) bool { return l.Unit == seconds && l.most() < 1 }, 1e-3},
		{"How long it takes (less is better)", "seconds", func(l line) bool { return l.Unit == seconds && l.most() >= 1 }, 1},
		{"How many in a second (more is better)", "a second", func(l line) bool { return l.Unit == perSecond }, 1},
		{"Memory of the central daemons, and beside a running job (less is better)", "MiB", func(l line) bool { return l.Unit == bytesOf }, 1 << 20},
	} {
		if c := r.chart(kind.has, kind.divide); len(c.X.Names) > 0 {
			c.Title, c.Y.Label = kind.title, kind.axis
			charts = append(charts, c)
		}
	}
	if len(charts) == 0 {
		return nil // nothing could be measured
	}
	return plot.Write(w, charts...)
}

// most is the largest median of a line.
func (l line) most() (most float64) {
	for _, c := range l.Cells {
		most = max(most, c.Median)
	}
	return most
}

// chart has those lines.
func (r *report) chart(has func(line) bool, divide float64) plot.Chart {
	c := plot.Chart{Y: plot.Axis{Log: true}}
	for _, s := range r.Systems {
		c.Series = append(c.Series, plot.Series{Name: title(s), Kind: plot.Bars})
	}
	for _, l := range r.Lines {
		if !has(l) {
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
