package plot

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/roost-batch/roost"
)

// Chart is a chart with two axes.
type Chart struct {
	Title  string
	X, Y   ChartAxis
	Series []ChartSeries
}

// ChartAxis is an axis of a chart.
type ChartAxis struct {
	Label string // what it shows, with the unit: "wait (s)"
	Log   bool   // logarithmic scale, for values above 0
	// Min and Max are the smallest range that is shown, so that charts can be compared.
	// If both are 0 the range comes from the points.
	Min, Max float64
	// Names are the names of the places 0, 1, 2, … on the X axis of a chart of [Bars].
	Names []string
}

// SeriesKind is how a series is drawn.
type SeriesKind uint8

// The kinds.
const (
	Line         SeriesKind = iota // from point to point
	Step                           // a value holds until the next one, such as a queue length
	LineWithDots                   // a line with a dot at each point, for few measured points
	Dots                           // dots without lines
	// a thin dashed line behind the others: a bound, or measurements of others
	Reference
	// a bar at each place of the X axis, with its value above it; the bars of several
	// series are side by side
	Bars
)

// DataPoint is a point of a series.
type DataPoint struct{ X, Y float64 }

// ChartSeries is a line, or the bars of one colour.
type ChartSeries struct {
	Name   string
	Kind   SeriesKind
	Points []DataPoint // in the order of X, except for lines that lead back
}

// The size of a chart, in points of 1/72 inch.
const (
	width  = 960
	height = 400
)

// maxPoints bounds the points of a chart.
const maxPoints = 1 << 26

// Write draws charts one below the other. The error wraps [roost.Invalid] if there is no
// chart, a value is not a number, a value on a logarithmic scale is not above zero, or
// bars have no names.
func Write(w io.Writer, charts ...Chart) error {
	if len(charts) == 0 {
		return fmt.Errorf("picture: %w: it has no chart", roost.Invalid)
	}
	for i := range charts {
		if err := charts[i].check(); err != nil {
			return fmt.Errorf("chart %q: %w", charts[i].Title, err)
		}
	}
	size := vg.Length(height * len(charts))
	picture := vgsvg.New(width, size)
	canvas := draw.New(picture)
	canvas.FillPolygon(paperColor, []vg.Point{{X: 0, Y: 0}, {X: width, Y: 0}, {X: width, Y: size}, {X: 0, Y: size}})
	for i := range charts {
		below := vg.Length(height * (len(charts) - 1 - i))
		charts[i].draw(draw.Crop(canvas, 12, -16, below+8, below+height-8-size))
	}
	var text bytes.Buffer
	if _, err := picture.WriteTo(&text); err != nil {
		return err
	}
	// The library names one font, which it also used to measure text. Browsers without it
	// need a similar one, not their default serif font.
	_, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")))
	return err
}

func (c *Chart) check() error {
	points := 0
	for _, a := range []*ChartAxis{&c.X, &c.Y} {
		if isNotFinite(a.Min) || isNotFinite(a.Max) || a.Min > a.Max {
			return fmt.Errorf("axis %q: %w: a range from %v to %v", a.Label, roost.Invalid, a.Min, a.Max)
		}
	}
	for i := range c.Series {
		s := &c.Series[i]
		if points += len(s.Points); points > maxPoints {
			return fmt.Errorf("series %q: %w: more than %d points", s.Name, roost.Exhausted, maxPoints)
		}
		for k, p := range s.Points {
			switch {
			case isNotFinite(p.X) || isNotFinite(p.Y):
				return fmt.Errorf("series %q: point %d: %w: (%v, %v) is no place", s.Name, k+1, roost.Invalid, p.X, p.Y)
			case c.X.Log && p.X <= 0 || c.Y.Log && p.Y <= 0:
				return fmt.Errorf("series %q: point %d: %w: (%v, %v) has no logarithm", s.Name, k+1,
					roost.Invalid, p.X, p.Y)
			case s.Kind == Bars && (p.X != math.Trunc(p.X) || p.X < 0 || p.X >= float64(len(c.X.Names))):
				return fmt.Errorf("series %q: point %d: %w: place %v of %d names", s.Name, k+1, roost.Invalid, p.X,
					len(c.X.Names))
			}
		}
	}
	return nil
}

func isNotFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// printable replaces the characters of a text that XML cannot hold: names come from
// files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
