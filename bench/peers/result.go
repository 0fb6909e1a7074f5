package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// comparisonReport is the result of a run.
type comparisonReport struct {
	Date    time.Time         `json:"date"`
	Machine string            `json:"machine"`
	Stock   bool              `json:"stock"`
	Rounds  int               `json:"rounds"`
	Sizes   workSizes         `json:"sizes"`
	Systems []string          `json:"systems"`
	Version map[string]string `json:"versions"`
	Lines   []figureLine      `json:"lines"`
}

// figureLine is one figure of all systems.
type figureLine struct {
	Figure       string                `json:"figure"`
	Title        string                `json:"title"`
	Label        string                `json:"-"`
	Unit         figureUnit            `json:"unit"`
	MoreIsBetter bool                  `json:"more_is_better"`
	Cells        map[string]figureCell `json:"systems"`
}

// figureCell is one figure of one system.
type figureCell struct {
	Values []float64 `json:"values,omitempty"`
	Median float64   `json:"median"`
	Ratio  float64   `json:"ratio,omitempty"` // to Roost's median; 0: none
	Note   string    `json:"note,omitempty"`
	Error  string    `json:"error,omitempty"` // why there is no value
}

// lineKey returns the key of the line of a figure for a number of jobs.
func lineKey(f figureSpec, n int) string {
	if n == 0 {
		return f.key
	}
	return fmt.Sprintf("%s-%d", f.key, n)
}

// addLines adds empty lines for all figures that will be measured.
func (r *comparisonReport) addLines(only []string) {
	for _, m := range systemMeasures() {
		if only != nil && !slices.Contains(only, m.name) {
			continue
		}
		for _, n := range m.jobCountList(r.Sizes) {
			for _, f := range m.figures(n, r.Sizes) {
				r.Lines = append(r.Lines, figureLine{lineKey(f, n), f.title, f.label, f.unit, f.moreIsBetter,
					map[string]figureCell{}})
			}
		}
	}
}

// addAnswer adds the result of one system for one measurement.
func (r *comparisonReport) addAnswer(m systemMeasure, n int, system string, ans measureResult) {
	for _, f := range m.figures(n, r.Sizes) {
		for i := range r.Lines {
			if r.Lines[i].Figure != lineKey(f, n) {
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

// computeRatios computes medians and ratios. A measurement that failed only in some
// rounds has a value; the error stays in the file.
func (r *comparisonReport) computeRatios() {
	for _, l := range r.Lines {
		for system, c := range l.Cells {
			c.Median = gauge.FigureSamples(c.Values).Median()
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

// valueText formats a value with two significant digits, in a suitable unit.
func (u figureUnit) valueText(v float64) string {
	switch u {
	case unitBytes:
		if v >= 1<<20 || v <= -1<<20 {
			return twoDigits(v/(1<<20)) + " MiB"
		}
		return twoDigits(v/(1<<10)) + " KiB"
	case unitSeconds:
		if v < 1 {
			return twoDigits(v*1000) + " ms"
		}
		return twoDigits(v) + " s"
	default:
		return twoDigits(v) + "/s"
	}
}

// twoDigits formats a number with at least two digits, and no decimals from ten on.
func twoDigits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case size >= 0.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
