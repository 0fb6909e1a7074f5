package chart

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// tickStep is the distance of the lines behind a chart: about four of them, at numbers
// that people would choose.
func tickStep(highest float64, u Unit) float64 {
	base := 10.0
	if u == Bytes {
		base = 2
	}
	step := math.Pow(base, math.Floor(math.Log(highest/4)/math.Log(base)))
	for _, n := range []float64{1, 2, 2.5, 5, 10} {
		if n == 2.5 && u == Bytes || n > base {
			continue
		}
		if highest/(step*n) <= 5 {
			return step * n
		}
	}
	return step * base
}

// timeSteps are the distances of the times below a chart.
var timeSteps = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour,
	6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 91 * day, 365 * day, 3650 * day,
}

const day = 24 * time.Hour

// drawTimes writes times below a chart: hours in its zone, and days in UTC, as accounts
// have them.
func (c *Chart) drawTimes(b *strings.Builder, p *plane) {
	span := p.to.Sub(p.from)
	step := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if span/s <= 8 {
			step = s
			break
		}
	}
	layout, zone := "15:04", cmp.Or(c.Zone, time.UTC)
	switch {
	case step >= day:
		layout, zone = "2 Jan", time.UTC
	case span > day:
		layout = "2 Jan 15:04"
		if span/step > 5 {
			step *= 2
		}
	}
	_, offset := p.from.In(zone).Zone()
	shift := time.Duration(offset) * time.Second
	for t := p.from.Add(shift).Truncate(step).Add(-shift).In(zone); !t.After(p.to); t = t.Add(step) {
		if t.Before(p.from) {
			continue
		}
		x := p.x(t)
		class := "middle"
		if x > width-50 {
			class = "end"
		}
		at := ""
		if step < day { // a script writes it in the reader's zone
			at = fmt.Sprintf(` data-time="%s"`, t.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" class="%s"%s>%s</text>`,
			x, x, height-bottom, height-bottom+4, x, height-8, class, at, t.Format(layout))
	}
}
