package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	paperColor = color.White
	inkColor   = color.Gray{Y: 0x22}
	gridColor  = color.Gray{Y: 0xdd}
)

// palette returns a colour of Okabe and Ito's palette. It leaves out yellow, which is
// invisible on white.
func palette(i int) color.Color {
	return [...]color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xd5, 0x5e, 0x00, 0xff}, // vermilion
		{0x00, 0x9e, 0x73, 0xff}, // bluish green
		{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x56, 0xb4, 0xe9, 0xff}, // sky blue
		{0x00, 0x00, 0x00, 0xff},
	}[i%colours]
}

const colours = 7

// The text sizes, in points.
const (
	titleSize = 18
	labelSize = 15
	tickSize  = 13
)

// draw draws the chart into a canvas: the plot, and the legend to its right.
func (c *Chart) draw(canvas draw.Canvas) {
	p := plot.New()
	c.styleAxes(p)
	legend := plot.NewLegend()
	sansFont(&legend.TextStyle.Font, labelSize)
	legend.TextStyle.Color = inkColor
	legend.Top, legend.Left = true, true
	legend.Padding, legend.ThumbnailWidth = 6, 28
	c.X.setScale(&p.X, false)
	c.Y.setScale(&p.Y, !c.Y.Log)
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = gridColor, gridColor
	if c.X.Names != nil {
		lines.Vertical.Color = nil
	}
	p.Add(lines)
	named := false
	for _, behind := range []bool{true, false} {
		for i := range c.Series {
			s := &c.Series[i]
			if (s.Kind == Reference) == behind {
				p.Add(c.plotter(i))
			}
			if s.Kind == LineWithDots || s.Kind == Dots { // so that the frame cuts no dot
				p.X.Padding, p.Y.Padding = 8, 5
			}
		}
	}
	for i := range c.Series {
		if s := &c.Series[i]; s.Name != "" {
			named = named || len(c.Series) > 1
			legend.Add(printable(s.Name), c.plotter(i).(plot.Thumbnailer))
		}
	}
	c.setRange(p)
	if !named {
		p.Draw(canvas)
		return
	}
	labelBox := legend.Rectangle(canvas)
	side := min(labelBox.Max.X-labelBox.Min.X+8, (canvas.Max.X-canvas.Min.X)/2)
	p.Draw(draw.Crop(canvas, 0, -side-16, 0, 0))
	legend.Draw(draw.Crop(canvas, canvas.Max.X-canvas.Min.X-side, 0, 0, -titleSize*2))
}

// styleAxes sets fonts and lines.
func (c *Chart) styleAxes(p *plot.Plot) {
	p.Title.Text = printable(c.Title)
	p.Title.TextStyle.Color = inkColor
	p.Title.Padding = 10
	sansFont(&p.Title.TextStyle.Font, titleSize)
	p.BackgroundColor = nil
	for _, a := range []struct {
		from *ChartAxis
		to   *plot.Axis
	}{{&c.X, &p.X}, {&c.Y, &p.Y}} {
		a.to.Label.Text = printable(a.from.Label)
		a.to.Label.Padding = 6
		a.to.Label.TextStyle.Color, a.to.Tick.Label.Color, a.to.Color, a.to.Tick.Color = inkColor, inkColor,
			inkColor, inkColor
		sansFont(&a.to.Label.TextStyle.Font, labelSize)
		sansFont(&a.to.Tick.Label.Font, tickSize)
		a.to.Tick.Length, a.to.Padding, a.to.Width = 5, 0, 1
	}
}

func sansFont(f *font.Font, size vg.Length) {
	f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size
}

// setScale sets the scale of an axis and its requested range, which includes zero if zero
// is set.
func (a *ChartAxis) setScale(to *plot.Axis, zero bool) {
	if a.Min != 0 || a.Max != 0 {
		to.Min, to.Max = a.Min, a.Max
	}
	if zero {
		to.Min, to.Max = min(to.Min, 0), max(to.Max, 0)
	}
	switch {
	case a.Names != nil:
		to.Min, to.Max = -0.5, float64(len(a.Names))-0.5
		to.Tick.Marker, to.Tick.Color = nameTicks(a.Names), color.Transparent
	case a.Log:
		to.Scale, to.Tick.Marker = plot.LogScale{}, logTicks{}
	default:
		to.Tick.Marker = linearTicks{}
	}
}

// setRange widens an empty range, and rounds a range whose lines would end in the frame.
func (c *Chart) setRange(p *plot.Plot) {
	for _, a := range []struct {
		from *ChartAxis
		to   *plot.Axis
	}{{&c.X, &p.X}, {&c.Y, &p.Y}} {
		to := a.to
		switch {
		case a.from.Log:
			if math.IsInf(to.Min, 1) || to.Min <= 0 {
				to.Min, to.Max = 1, 10
			}
			if to.Min == to.Max {
				to.Min, to.Max = to.Min/2, to.Max*2
			}
			if a.from == &c.Y {
				to.Min, to.Max = roundLog(to.Min, to.Max)
			}
		case math.IsInf(to.Min, 1):
			to.Min, to.Max = 0, 1
		case to.Min == to.Max:
			if to.Max++; a.from == &c.X {
				to.Min--
			}
		}
		to.AutoRescale = a.from == &c.Y && !a.from.Log
	}
}

// plotter returns the plotter of a series.
func (c *Chart) plotter(i int) plot.Plotter {
	s := &c.Series[i]
	if s.Kind == Bars {
		return c.bars(i)
	}
	points := thinPoints(s.Points, c.X.Log)
	line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: palette(i), Width: 2}}
	if i >= colours {
		line.Dashes = []vg.Length{8, 3}
	}
	switch s.Kind {
	case Step:
		line.StepStyle = plotter.PostStep
	case Reference:
		line.Width, line.Dashes = 1.5, []vg.Length{4, 4}
	case LineWithDots, Dots:
		dots := &plotter.Scatter{XYs: points,
			GlyphStyle: draw.GlyphStyle{Color: palette(i), Radius: 4, Shape: draw.CircleGlyph{}}}
		if s.Kind == Dots {
			dots.Radius, dots.Shape = 5, draw.PyramidGlyph{}
			return dots
		}
		return &dottedLine{line, dots}
	}
	return line
}

// dottedLine is a line with dots.
type dottedLine struct {
	*plotter.Line
	dots *plotter.Scatter
}

func (m *dottedLine) Plot(c draw.Canvas, p *plot.Plot) {
	m.Line.Plot(c, p)
	m.dots.Plot(c, p)
}

func (m *dottedLine) Thumbnail(c *draw.Canvas) {
	m.Line.Thumbnail(c)
	m.dots.Thumbnail(c)
}
