package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// barSeries draws the bars of one series. The bars of the library begin at zero, which a
// logarithmic scale does not have.
type barSeries struct {
	points        []DataPoint
	color         color.Color
	offset, width float64 // left edge of a bar relative to its place, and its width
	logarithmic   bool
}

// bars returns the bars of a series, beside those of the others.
func (c *Chart) bars(i int) *barSeries {
	before, all := 0, 0
	for k := range c.Series {
		if c.Series[k].Kind == Bars {
			all++
			if k < i {
				before++
			}
		}
	}
	wide := 0.8 / float64(all)
	return &barSeries{c.Series[i].Points, palette(i), wide*float64(before) - 0.4, wide, c.Y.Log}
}

// Plot draws the bars.
func (b *barSeries) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := text.Style{Color: inkColor, Font: p.X.Tick.Label.Font, XAlign: draw.XCenter, YAlign: draw.YBottom,
		Handler: p.X.Tick.Label.Handler}
	bottom := c.Min.Y
	if !b.logarithmic {
		bottom = y(0)
	}
	for _, at := range b.points {
		left, right, top := x(at.X+b.offset)+1, x(at.X+b.offset+b.width)-1, y(at.Y)
		c.FillPolygon(b.color, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top},
			{X: left, Y: top}})
		c.FillText(style, vg.Point{X: (left + right) / 2, Y: max(top, bottom) + 2}, shortNumber(at.Y))
	}
}

// DataRange implements [plot.DataRanger]. It leaves room for the value above the tallest
// bar.
func (b *barSeries) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, at := range b.points {
		xmin, xmax = min(xmin, at.X-0.5), max(xmax, at.X+0.5)
		ymin, ymax = min(ymin, at.Y), max(ymax, at.Y)
	}
	if b.logarithmic {
		return xmin, xmax, ymin / 2, ymax * 1.5
	}
	return xmin, xmax, min(ymin, 0), max(ymax*1.08, 0)
}

// Thumbnail implements [plot.Thumbnailer].
func (b *barSeries) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y},
		{X: c.Min.X, Y: c.Max.Y}})
}
