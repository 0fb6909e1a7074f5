package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// report is everything that a run has found out.
type report struct {
	Date    time.Time         `json:"date"`
	Machine string            `json:"machine"`
	Stock   bool              `json:"stock"`
	Rounds  int               `json:"rounds"`
	Sizes   sizes             `json:"sizes"`
	Systems []string          `json:"systems"`
	Version map[string]string `json:"versions"`
	Lines   []line            `json:"lines"`
}

// line is one figure of all systems.
type line struct {
	Figure string          `json:"figure"`
	Title  string          `json:"title"`
	Label  string          `json:"-"`
	Unit   unit            `json:"unit"`
	More   bool            `json:"more_is_better"`
	Cells  map[string]cell `json:"systems"`
}

// cell is one figure of one system.
type cell struct {
	Values []float64 `json:"values,omitempty"`
	Median float64   `json:"median"`
	Ratio  float64   `json:"ratio,omitempty"` // to Roost's median; 0: there is none
	Note   string    `json:"note,omitempty"`
	Error  string    `json:"error,omitempty"` // why there is no value
}

// key names the line of a figure for a number of jobs.
func key(f figure, n int) string {
	if n == 0 {
		return f.key
	}
	return fmt.Sprintf("%s-%d", f.key, n)
}

// plan makes the lines of all figures that are to be measured, empty.
func (r *report) plan(only []string) {
	for _, m := range measures() {
		if only != nil && !slices.Contains(only, m.name) {
			continue
		}
		for _, n := range m.numbers(r.Sizes) {
			for _, f := range m.figures(n, r.Sizes) {
				r.Lines = append(r.Lines, line{key(f, n), f.title, f.label, f.unit, f.more, map[string]cell{}})
			}
		}
	}
}

// take adds what one system has answered to one measure.
func (r *report) take(m measure, n int, system string, ans answer) {
	for _, f := range m.figures(n, r.Sizes) {
		for i := range r.Lines {
			if r.Lines[i].Figure != key(f, n) {
				continue
			}
			c := r.Lines[i].Cells[system]
			c.Values = append(c.Values, ans.Values[f.key]...)
			if ans.Note != "" {
				c.Note = ans.Note
			}
			if ans.Error != "" {
				c.Error = ans.Error
			}
			r.Lines[i].Cells[system] = c
		}
	}
}

// conclude works out medians and ratios. What failed in one round and not in another has a value; the error stays in the file.
func (r *report) conclude() {
	for _, l := range r.Lines {
		for system, c := range l.Cells {
			c.Median = gauge.Figures(c.Values).Median()
			l.Cells[system] = c
		}
		base := l.Cells["roost"]
		for system, c := range l.Cells {
			if len(c.Values) > 0 && base.Median > 0 {
				c.Ratio = c.Median / base.Median
				l.Cells[system] = c
			}
		}
	}
}

// text writes a value with two digits that count, in the unit that suits.
func (u unit) text(v float64) string {
	switch u {
	case bytesOf:
		if v >= 1<<20 || v <= -1<<20 {
			return digits(v/(1<<20)) + " MiB"
		}
		return digits(v/(1<<10)) + " KiB"
	case seconds:
		if v < 1 {
			return digits(v*1000) + " ms"
		}
		return digits(v) + " s"
	default:
		return digits(v) + "/s"
	}
}

// digits writes a number with two digits at least, and none after the point from ten on.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case size >= 0.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
