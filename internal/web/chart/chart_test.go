package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// parse reads an SVG element and returns its texts.
func parse(t *testing.T, svg string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, string(token))
		case xml.StartElement:
			for _, a := range token.Attr {
				if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
					t.Fatalf("it has %s=%q", a.Name.Local, a.Value)
				}
			}
		}
	}
}

// TestHostileChart: any values and names give a chart of numbers that browsers can read.
func TestHostileChart(t *testing.T) {
	values := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300, 7e12}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c := Chart{Title: `<script>"a"&</script>`, Step: time.Duration(random.Int64N(int64(48 * time.Hour))),
			Unit: Unit(random.IntN(2)), Bound: values[random.IntN(2)], Label: `</text><a href="x">`}
		at := time.Unix(random.Int64N(2e9), 0)
		for range random.IntN(6) {
			c.Times = append(c.Times, at)
			at = at.Add(time.Duration(random.Int64N(int64(100 * 24 * time.Hour))))
		}
		for range random.IntN(9) {
			s := Series{Name: "<b>", Area: random.IntN(2) == 0}
			for range c.Times {
				s.Values = append(s.Values, values[random.IntN(len(values))])
			}
			c.Series = append(c.Series, s)
		}
		svg := c.Draw()
		for _, text := range parse(t, svg) {
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Fatalf("it says %q: %s", text, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf ") || strings.Contains(svg, "<script") ||
			len(svg) > 20_000 {
			t.Fatalf("%d bytes: %s", len(svg), svg)
		}
	}
}

// TestAreas: areas stand on one another, and their steps are where the values are.
func TestAreas(t *testing.T) {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := Chart{Title: "t", Step: time.Hour, Times: []time.Time{begin, begin.Add(time.Hour)},
		Series: []Series{{Name: "a", Area: true, Values: []float64{1, 2}},
			{Name: "b", Area: true, Values: []float64{1, 2}}}}
	svg := c.Draw()
	for _, want := range []string{ // the chart is 646 wide and 152 high, up to 4
		`<path class="area fill-1" d="M62.0 164.0V126.0H385.0V88.0H708.0V164.0H385.0V164.0H62.0Z"/>`,
		`<path class="area fill-2" d="M62.0 126.0V88.0H385.0V12.0H708.0V88.0H385.0V126.0H62.0Z"/>`,
		`aria-label="t; a at most 2; b at most 2"`, `>01:00</text>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("there is no %s in %s", want, svg)
		}
	}
}

// TestZone draws hours in a zone, and days in UTC.
func TestZone(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		step time.Duration
		zone *time.Location
		want string
	}{
		{time.Hour / 2, nil, `data-time="2026-03-01T01:00:00Z">01:00</text>`},
		{time.Hour / 2, time.FixedZone("X", 5*3600+1800), `data-time="2026-03-01T00:30:00Z">06:00</text>`},
		{day, time.FixedZone("X", 5*3600+1800), `class="middle">4 Mar</text>`},
	} {
		chart := Chart{Title: "t", Step: c.step, Zone: c.zone, Series: []Series{{Name: "a"}}}
		for i := range 12 {
			chart.Times = append(chart.Times, from.Add(time.Duration(i)*c.step))
			chart.Series[0].Values = append(chart.Series[0].Values, 1)
		}
		if got := chart.Draw(); !strings.Contains(got, c.want) {
			t.Errorf("%v: got %s, want %s", c.zone, got, c.want)
		}
	}
}
