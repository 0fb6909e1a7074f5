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
	paper = color.White
	ink   = color.Gray{Y: 0x22}
	grid  = color.Gray{Y: 0xdd}
)

// palette is that of Okabe and Ito, without the yellow, which is lost on white.
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

// The sizes of letters, in points.
const (
	titleSize = 18
	labelSize = 15
	tickSize  = 13
)

// draw draws the chart into a canvas: the plot, and to its right the legend.
func (c *Chart) draw(canvas draw.Canvas) {
	p := plot.New()
	c.dress(p)
	legend := plot.NewLegend()
	sans(&legend.TextStyle.Font, labelSize)
	legend.TextStyle.Color = ink
	legend.Top, legend.Left = true, true
	legend.Padding, legend.ThumbnailWidth = 6, 28
	c.X.extend(&p.X, false)
	c.Y.extend(&p.Y, !c.Y.Log)
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
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
			if s.Kind == Marked || s.Kind == Dots { // so that the frame cuts no dot
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
	c.range_(p)
	if !named {
		p.Draw(canvas)
		return
	}
	box := legend.Rectangle(canvas)
	side := min(box.Max.X-box.Min.X+8, (canvas.Max.X-canvas.Min.X)/2)
	p.Draw(draw.Crop(canvas, 0, -side-16, 0, 0))
	legend.Draw(draw.Crop(canvas, canvas.Max.X-canvas.Min.X-side, 0, 0, -titleSize*2))
}

// dress chooses letters and lines.
func (c *Chart) dress(p *plot.Plot) {
	p.Title.Text = printable(c.Title)
	p.Title.TextStyle.Color = ink
	p.Title.Padding = 10
	sans(&p.Title.TextStyle.Font, titleSize)
	p.BackgroundColor = nil
	for _, a := range []struct {
		from *Axis
		to   *plot.Axis
	}{{&c.X, &p.X}, {&c.Y, &p.Y}} {
		a.to.Label.Text = printable(a.from.Label)
		a.to.Label.Padding = 6
		a.to.Label.TextStyle.Color, a.to.Tick.Label.Color, a.to.Color, a.to.Tick.Color = ink, ink, ink, ink
		sans(&a.to.Label.TextStyle.Font, labelSize)
		sans(&a.to.Tick.Label.Font, tickSize)
		a.to.Tick.Length, a.to.Padding, a.to.Width = 5, 0, 1
	}
}

func sans(f *font.Font, size vg.Length) {
	f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size
}

// extend gives an axis its scale and the range that was asked for, with zero in it if it has to be.
func (a *Axis) extend(to *plot.Axis, zero bool) {
	if a.Min != 0 || a.Max != 0 {
		to.Min, to.Max = a.Min, a.Max
	}
	if zero {
		to.Min, to.Max = min(to.Min, 0), max(to.Max, 0)
	}
	switch {
	case a.Names != nil:
		to.Min, to.Max = -0.5, float64(len(a.Names))-0.5
		to.Tick.Marker, to.Tick.Color = places(a.Names), color.Transparent
	case a.Log:
		to.Scale, to.Tick.Marker = plot.LogScale{}, powers{}
	default:
		to.Tick.Marker = steps{}
	}
}

// range_ widens what the series have left without a width, and rounds it where lines would end in the frame.
func (c *Chart) range_(p *plot.Plot) {
	for _, a := range []struct {
		from *Axis
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

// plotter is what draws a series.
func (c *Chart) plotter(i int) plot.Plotter {
	s := &c.Series[i]
	if s.Kind == Bars {
		return c.bars(i)
	}
	points := thin(s.Points, c.X.Log)
	line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: palette(i), Width: 2}}
	if i >= colours {
		line.Dashes = []vg.Length{8, 3}
	}
	switch s.Kind {
	case Step:
		line.StepStyle = plotter.PostStep
	case Reference:
		line.Width, line.Dashes = 1.5, []vg.Length{4, 4}
	case Marked, Dots:
		dots := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: palette(i), Radius: 4, Shape: draw.CircleGlyph{}}}
		if s.Kind == Dots {
			dots.Radius, dots.Shape = 5, draw.PyramidGlyph{}
			return dots
		}
		return &marked{line, dots}
	}
	return line
}

// marked is a line with dots.
type marked struct {
	*plotter.Line
	dots *plotter.Scatter
}

func (m *marked) Plot(c draw.Canvas, p *plot.Plot) {
	m.Line.Plot(c, p)
	m.dots.Plot(c, p)
}

func (m *marked) Thumbnail(c *draw.Canvas) {
	m.Line.Thumbnail(c)
	m.dots.Thumbnail(c)
}
