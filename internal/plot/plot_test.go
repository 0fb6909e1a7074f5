package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

var chartsFile = flag.String("show", "", "write the charts of the tests to this file, to be looked at")

// sampleCharts returns a chart of each kind.
func sampleCharts() []Chart {
	r := rand.New(rand.NewPCG(1, 2))
	var used, queue []DataPoint
	q := 0.
	for i := range 40000 {
		x := float64(i) / 400
		q = max(q+r.NormFloat64()*40, 0)
		used = append(used, DataPoint{x, 70 + 25*math.Sin(x/4) + 4*r.Float64()})
		queue = append(queue, DataPoint{x, q})
	}
	waits := make([]float64, 500)
	for i := range waits {
		waits[i] = math.Exp(r.NormFloat64()*2 + 4)
	}
	return []Chart{
		{Title: "Utilisation", X: ChartAxis{Label: "time (days)"}, Y: ChartAxis{Label: "used (%)", Max: 100},
			Series: []ChartSeries{{Name: "processors", Kind: Step, Points: used}}},
		{Title: "Queue", X: ChartAxis{Label: "time (days)"}, Y: ChartAxis{Label: "tasks"},
			Series: []ChartSeries{{"waiting", Step, queue},
				{"a bound that was promised & <kept>", Reference, []DataPoint{{0, 3000}, {100, 3000}}}}},
		{Title: "How long they waited", X: ChartAxis{Label: "wait (s)", Log: true},
			Y: ChartAxis{Label: "tasks (%)", Max: 100}, Series: []ChartSeries{{"easy", Step, CDF(waits)},
				{"first come, first served", Step, CDF(waits[:100])}}},
		{Title: "Delay", X: ChartAxis{Label: "jobs"}, Y: ChartAxis{Label: "delay (ms)", Log: true},
			Series: []ChartSeries{
				{"central", LineWithDots, []DataPoint{{60, 7}, {120, 13.5}, {180, 21}}},
				{"six schedulers", LineWithDots, []DataPoint{{60, 9}, {120, 10}, {180, 12}}},
				{"the paper", Reference, []DataPoint{{60, 50}, {120, 90}, {180, 14000}}},
				{"another paper", Dots, []DataPoint{{60, 500}, {180, 2500}}},
			}},
		{Title: "Jobs a second", X: ChartAxis{Label: "system", Names: []string{"sleep 0", "true", "array of 1,000"}},
			Y: ChartAxis{Label: "jobs/s", Log: true}, Series: []ChartSeries{
				{"Roost", Bars, []DataPoint{{0, 2500}, {1, 3150}, {2, 12345}}}, {"HTCondor", Bars,
					[]DataPoint{{0, 11.5}, {1, 12}}}, {"Slurm", Bars, []DataPoint{{0, 250}, {1, 222}, {2, 480}}},
			}},
		{Title: "Bars from zero", X: ChartAxis{Label: "policy", Names: []string{"a", "b"}},
			Y: ChartAxis{Label: "machines"}, Series: []ChartSeries{{"", Bars, []DataPoint{{0, 1213}, {1, 1190}}}}},
		{Title: "Nothing happened", X: ChartAxis{Label: "time (s)"}, Y: ChartAxis{Label: "tasks"},
			Series: []ChartSeries{{"waiting", Step, nil}, {"once", LineWithDots, []DataPoint{{3, 0}}}}},
	}
}

// TestWrite checks that charts are well-formed, complete, reproducible and small.
func TestWrite(t *testing.T) {
	var first, second bytes.Buffer
	if err := errors.Join(Write(&first, sampleCharts()...), Write(&second, sampleCharts()...)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same charts gave other bytes")
	}
	if *chartsFile != "" {
		if err := os.WriteFile(*chartsFile, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if first.Len() > 1<<20 {
		t.Errorf("it has %d bytes", first.Len())
	}
	var texts []string
	for d := xml.NewDecoder(&first); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	for _, want := range []string{"Utilisation", "time (days)", "a bound that was promised & <kept>", "12,345", "11.5",
		"array of 1,000", "HTCondor", "1,213", "2,500", "0.25"} {
		if !slices.Contains(texts, want) {
			t.Errorf("it does not say %q in %q", want, texts)
		}
	}
	if slices.Contains(texts, "processors") {
		t.Error("one line needs no legend")
	}
}

// TestRefused checks what cannot be drawn.
func TestRefused(t *testing.T) {
	line := func(p ...DataPoint) []ChartSeries { return []ChartSeries{{Name: "s", Points: p}} }
	for _, test := range []struct {
		chart Chart
		want  string
	}{
		{Chart{Title: "c", Series: line(DataPoint{1, 1}, DataPoint{2, math.NaN()})},
			`chart "c": series "s": point 2: invalid request: (2, NaN) is no place`},
		{Chart{Title: "c", Series: line(DataPoint{math.Inf(1), 1})}, "is no place"},
		{Chart{Title: "c", Y: ChartAxis{Log: true}, Series: line(DataPoint{1, 0})}, "(1, 0) has no logarithm"},
		{Chart{Title: "c", Y: ChartAxis{Label: "y", Min: 2, Max: 1}}, `axis "y": invalid request: a range from 2 to 1`},
		{Chart{Title: "c", X: ChartAxis{Names: []string{"a"}},
			Series: []ChartSeries{{Name: "s", Kind: Bars, Points: []DataPoint{{1, 2}}}}}, "place 1 of 1 names"},
	} {
		err := Write(io.Discard, test.chart)
		if err == nil || !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if err := Write(io.Discard); !errors.Is(err, roost.Invalid) {
		t.Errorf("no chart: %v", err)
	}
	var out bytes.Buffer
	if err := Write(&out, Chart{Title: "a\x1b[2J\xff\u202eb", Series: line(DataPoint{1, 1})}); err != nil ||
		!strings.Contains(out.String(), ">a?[2J??b<") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestThin checks that a reduced series has few points, with its extremes and ends in
// order.
func TestThin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := 1; n < 200_000; n *= 3 {
		points, x := make([]DataPoint, n), 0.
		for i := range points {
			x += r.ExpFloat64() * float64(r.IntN(2))
			points[i] = DataPoint{x, r.NormFloat64()}
		}
		got := thinPoints(points, false)
		if len(got) > min(n, 4*(thinColumns+1)) {
			t.Errorf("%d of %d are left", len(got), n)
		}
		height := func(a, b DataPoint) int { return int(math.Copysign(1, a.Y-b.Y)) }
		low, high, remaining := slices.MinFunc(points, height), slices.MaxFunc(points, height), []DataPoint{}
		for _, p := range got {
			remaining = append(remaining, DataPoint(p))
		}
		if !slices.Contains(remaining, low) || !slices.Contains(remaining, high) || remaining[0] != points[0] ||
			remaining[len(remaining)-1] != points[n-1] {
			t.Errorf("of %d points it lost an extreme or an end", n)
		}
		i := 0
		for _, p := range points {
			if i < len(remaining) && remaining[i] == p {
				i++
			}
		}
		if i != len(remaining) {
			t.Errorf("of %d points, those left are in another order", n)
		}
	}
}

// TestThinPowers checks that small values have their own columns on a logarithmic scale.
func TestThinPowers(t *testing.T) {
	points := make([]DataPoint, 100_000)
	for i := range points {
		points[i] = DataPoint{float64(i + 1), float64(i)}
	}
	got := thinPoints(points, true)
	if len(got) > 4*(thinColumns+1) {
		t.Errorf("%d are left", len(got))
	}
	for i := range 50 { // in columns of their own
		if DataPoint(got[i]) != points[i] {
			t.Fatalf("point %d: got %v, want %v", i, got[i], points[i])
		}
	}
}

// TestCDF compares a distribution with counting.
func TestCDF(t *testing.T) {
	values := []float64{3, 1, 1, 7, 3, 3}
	points := CDF(values)
	if points[0] != (DataPoint{1, 0}) || !slices.IsSortedFunc(points, func(a, b DataPoint) int {
		return int(a.Y - b.Y)
	}) || len(points) != 4 {
		t.Errorf("got %v", points)
	}
	for _, p := range points[1:] {
		n := 0.
		for _, v := range values {
			if v <= p.X {
				n++
			}
		}
		if math.Abs(p.Y-100*n/6) > 1e-9 {
			t.Errorf("at %v: got %v %%, want %v of 6", p.X, p.Y, n)
		}
	}
	if CDF(nil) != nil {
		t.Error("of nothing there is no curve")
	}
}

// TestNumbers checks how numbers are formatted.
func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234567: "1,234,567", 0.012345: "0.0123", 99.96: "100", 5: "5",
		-1500: "-1,500", 1e-9: "1e-09", 2.5: "2.5", 100: "100", 1e12: "1e+12"} {
		if got := shortNumber(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	for _, test := range []struct {
		gap  float64
		want int
	}{{1, 0}, {0.5, 1}, {0.25, 2}, {20, 0}, {2.5, 1}, {0.1 + 0.2, 1}} {
		if got := decimalDigits(test.gap); got != test.want {
			t.Errorf("a gap of %v: got %d decimals, want %d", test.gap, got, test.want)
		}
	}
	for _, r := range [][2]float64{{0.5, 90}, {3, 14000}, {1, 1}, {7e-5, 6e-4}} {
		low, high := roundLog(r[0], r[1])
		if low > r[0]*(1+1e-6) || high < r[1]*(1-1e-6) || low < r[0]/3 || high > r[1]*3 {
			t.Errorf("%v: got from %v to %v", r, low, high)
		}
		if n := len(logTicks{}.Ticks(low, high)); high > low && n < 2 {
			t.Errorf("%v: %d ticks", r, n)
		}
	}
}
