// Package chart draws charts over time as SVG for the pages of the web daemon.
//
// Everything that has a colour has a class instead, so the style sheet colours a chart
// for light and dark, and the policy of the pages on styles holds. Package plot draws
// charts for files; its colours are fixed. A value holds for a length of time, so that
// lines and areas are steps. Texts are escaped. A screen reader gets the title and a
// summary; the numbers are in the table that stands below a chart.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Chart is a chart over time.
type Chart struct {
	Title  string
	Unit   Unit
	Step   time.Duration // for which a value holds
	Times  []time.Time   // begins of the values, in order
	Series []Series
	Bound  float64        // a line across the chart, such as what was asked for; 0: none
	Label  string         // of the bound
	Zone   *time.Location // of the hours below it; nil: UTC
}

// Series is a line of a chart, or an area that stands on those before it.
type Series struct {
	Name   string
	Area   bool
	Values []float64 // one for each time; NaN: none
}

// Unit says how values are written.
type Unit uint8

// The units.
const (
	Number Unit = iota
	Bytes
)

// Text writes a value.
func (u Unit) Text(v float64) string {
	if u == Bytes {
		return roost.Bytes(v).String()
	}
	decimals := 2
	if v > 0 && v < 1 {
		decimals = min(2-int(math.Floor(math.Log10(v))), 9)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// The places within a chart, in units of its own.
const (
	width, height = 720.0, 190.0
	left, right   = 62.0, 12.0
	top, bottom   = 12.0, 26.0
	maxSeries     = 6 // that the style sheet has colours for
)

// plane maps times and values to places.
type plane struct {
	from, to time.Time
	highest  float64
}

func (p *plane) x(t time.Time) float64 {
	return left + (width-left-right)*float64(t.Sub(p.from))/float64(max(p.to.Sub(p.from), 1))
}

func (p *plane) y(v float64) float64 {
	return height - bottom - (height-top-bottom)*min(max(v, 0), p.highest)/p.highest
}

// Draw returns the chart as an SVG element. A chart without values is empty.
func (c *Chart) Draw() string {
	if len(c.Times) == 0 || len(c.Series) == 0 {
		return ""
	}
	p := plane{from: c.Times[0], to: c.Times[len(c.Times)-1].Add(c.Step), highest: c.highest()}
	step := tickStep(p.highest, c.Unit)
	p.highest = math.Ceil(p.highest/step-1e-9) * step
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height,
		html.EscapeString(c.summary()))
	for v := 0.0; v <= p.highest+step/2; v += step {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" class="end">%s</text>`,
			left, width-right, p.y(v), p.y(v), left-6, p.y(v)+4, html.EscapeString(c.Unit.Text(v)))
	}
	c.drawTimes(&b, &p)
	base := make([]float64, len(c.Times))
	for i := range c.Series[:min(len(c.Series), maxSeries)] {
		s := &c.Series[i]
		if s.Area {
			fmt.Fprintf(&b, `<path class="area fill-%d" d="%s"/>`, i+1, c.area(&p, s.Values, base))
		} else {
			fmt.Fprintf(&b, `<path class="line stroke-%d" d="%s"/>`, i+1, c.line(&p, s.Values))
		}
	}
	if c.Bound > 0 {
		label := p.y(c.Bound) - 4
		if label < top+12 {
			label += 18 // below the line
		}
		fmt.Fprintf(&b, `<line class="bound" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" class="end">%s</text>`,
			left, width-right, p.y(c.Bound), p.y(c.Bound), width-right-2, label, html.EscapeString(c.Label))
	}
	b.WriteString("</svg>")
	return b.String()
}

// highest is the highest value that is shown, at least a little.
func (c *Chart) highest() float64 {
	highest := c.Bound
	for i := range c.Times {
		sum := 0.0
		for k := range c.Series {
			switch v := c.Series[k].at(i); {
			case c.Series[k].Area:
				sum += max(v, 0)
			default:
				highest = max(highest, v)
			}
		}
		highest = max(highest, sum)
	}
	if highest <= 0 || math.IsInf(highest, 0) {
		return 1
	}
	return highest
}

// at is a value, 0 for none.
func (s *Series) at(i int) float64 {
	if i >= len(s.Values) || math.IsNaN(s.Values[i]) || math.IsInf(s.Values[i], 0) {
		return 0
	}
	return s.Values[i]
}

// summary is what a screen reader says of the chart.
func (c *Chart) summary() string {
	text := c.Title
	for i := range c.Series {
		highest := 0.0
		for k := range c.Times {
			highest = max(highest, c.Series[i].at(k))
		}
		text += fmt.Sprintf("; %s at most %s", c.Series[i].Name, c.Unit.Text(highest))
	}
	if c.Bound > 0 {
		text += "; " + c.Label
	}
	return text
}

// isApart reports whether there is a gap before a value.
func (c *Chart) isApart(i int) bool { return i == 0 || c.Times[i].Sub(c.Times[i-1]) > c.Step*3/2 }

// line returns the path of a line.
func (c *Chart) line(p *plane, values []float64) string {
	var b strings.Builder
	isDown := false
	for i := range min(len(values), len(c.Times)) {
		if math.IsNaN(values[i]) {
			isDown = false
			continue
		}
		command := "L"
		if !isDown || c.isApart(i) {
			command = "M"
		}
		y := p.y(values[i])
		fmt.Fprintf(&b, "%s%.1f %.1fH%.1f", command, p.x(c.Times[i]), y, p.x(c.end(i)))
		isDown = true
	}
	return b.String()
}

// end is until when a value holds: no further than the next one's begin.
func (c *Chart) end(i int) time.Time {
	end := c.Times[i].Add(c.Step)
	if i+1 < len(c.Times) && (c.Times[i+1].Before(end) || !c.isApart(i+1)) {
		return c.Times[i+1]
	}
	return end
}

// area returns the path of an area on base, and adds its values to base.
func (c *Chart) area(p *plane, values, base []float64) string {
	var b strings.Builder
	for i := 0; i < len(c.Times); {
		n := i + 1
		for n < len(c.Times) && !c.isApart(n) {
			n++
		}
		fmt.Fprintf(&b, "M%.1f %.1f", p.x(c.Times[i]), p.y(base[i]))
		for k := i; k < n; k++ {
			fmt.Fprintf(&b, "V%.1fH%.1f", p.y(base[k]+(&Series{Values: values}).at(k)), p.x(c.end(k)))
		}
		for k := n - 1; k >= i; k-- {
			fmt.Fprintf(&b, "V%.1fH%.1f", p.y(base[k]), p.x(c.Times[k]))
		}
		b.WriteString("Z")
		i = n
	}
	for i := range base {
		base[i] += (&Series{Values: values}).at(i)
	}
	return b.String()
}
