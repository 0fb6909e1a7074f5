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

// Chart is one picture with two axes.
type Chart struct {
	Title  string
	X, Y   ChartAxis
	Series []ChartSeries
}

// ChartAxis is one of them.
type ChartAxis struct {
	Label string // what it shows, with the unit: "wait (s)"
	Log   bool   // a scale of powers of ten, for points above 0
	// Min and Max are the least range that is shown, for a chart that has to compare with
	// another; where both are 0 the points say what they need.
	Min, Max float64
	// Names are those of the places 0, 1, 2, … on the X axis of a chart of [Bars].
	Names []string
}

// SeriesKind is how a series is drawn.
type SeriesKind uint8

// The kinds.
const (
	Line         SeriesKind = iota // from point to point
	Step                           // a value holds until the next: how many wait, how much is used
	LineWithDots                   // a line with a dot at each point, where there are few and each was measured
	Dots                           // a dot at each point, and nothing between them: what is known of a few places only
	// a thin line of dashes behind the others: a bound, or what somebody else has
	// measured
	Reference
	// at each place of the X axis a bar, and its value above it; the bars of several
	// series stand side by side
	Bars
)

// DataPoint is one value.
type DataPoint struct{ X, Y float64 }

// ChartSeries is what one line, or the bars of one colour, shows.
type ChartSeries struct {
	Name   string
	Kind   SeriesKind
	Points []DataPoint // in the order of X, but for lines that lead back
}

// The size of a chart, in points of 1/72 inch.
const (
	width  = 960
	height = 400
)

// maxPoints bounds what is worked on for one chart. Nobody plots more by intent.
const maxPoints = 1 << 26

// Write draws charts one below the other. It is [roost.Invalid] to draw none, a value
// that is no number or, on a scale of powers of ten, not above zero, and bars without
// names for their places.
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
	// The library names one font, with which it measured. Where it isn't installed one
	// that looks alike has to be found, not the serifs of a browser.
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

// printable is a text as a picture may have it: names come out of files, and XML cannot
// hold every character.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
