package lublin

import (
	"compress/gzip"
	"errors"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/swf"
)

// figures are what is compared of a log.
type figures struct {
	jobs                     int
	serial, pow2             float64 // parts of the jobs; powers of two above 1
	size, sizes              float64 // of parallel jobs: the mean of the logarithm, and its deviation
	run, runs                float64 // of the logarithm of run times
	large                    float64 // the same, of jobs of more than a quarter of the machine
	gap                      float64 // seconds between two, on the mean
	noon                     float64 // part of the jobs that come between 10 and 18 o'clock
	largest, longest, lowest int64
}

func figuresOf(log *swf.Log, processors int64) figures {
	f := figures{jobs: len(log.Jobs), lowest: math.MaxInt64}
	var sizes, runs, large []float64
	for i := range log.Jobs {
		j := &log.Jobs[i]
		run := math.Log(float64(j.Run))
		switch {
		case j.Procs == 1:
			f.serial++
		case bits.OnesCount64(uint64(j.Procs)) == 1:
			f.pow2++
		}
		if j.Procs > 1 {
			sizes = append(sizes, math.Log2(float64(j.Procs)))
		}
		if runs = append(runs, run); j.Procs > processors/4 {
			large = append(large, run)
		}
		if hour := j.Submit % 86400 / 3600; hour >= 10 && hour < 18 {
			f.noon++
		}
		f.largest, f.longest, f.lowest = max(f.largest, j.Procs), max(f.longest, j.Run), min(f.lowest, j.Run)
	}
	n := float64(f.jobs)
	f.serial, f.pow2, f.noon = f.serial/n, f.pow2/n, f.noon/n
	f.size, f.sizes = spread(sizes)
	f.run, f.runs = spread(runs)
	f.large, _ = spread(large)
	f.gap = float64(log.Jobs[len(log.Jobs)-1].Submit) / n
	return f
}

func spread(list []float64) (mean, deviation float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += (v - mean) * (v - mean) / float64(len(list))
	}
	return mean, math.Sqrt(deviation)
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s: %.4f, want %.4f give or take %.4f", what, got, want, by)
	}
}

// TestMoments compares a long log with what its parameters say. The bounds are four standard errors, or more.
func TestMoments(t *testing.T) {
	const jobs = 200_000
	m := Model{Jobs: jobs, Processors: 128, Seed: 1}
	log, err := m.Log()
	if err != nil {
		t.Fatal(err)
	}
	f := figuresOf(log, 128)
	near(t, "serial jobs", f.serial, 0.244, 0.004)
	// The two stages are [0.8, 4.5] and [4.5, 7]: their means, by their parts. That some are rounded changes it little.
	near(t, "logarithm of sizes", f.size, 0.86*(0.8+4.5)/2+0.14*(4.5+7)/2, 0.02)
	if f.pow2 < 0.576 || f.pow2 > 0.66 { // of those that are not made one by rounding some are one by chance
		t.Errorf("powers of two: %.3f", f.pow2)
	}
	if f.largest != 128 || f.longest > 162_754 || f.lowest < 1 {
		t.Errorf("the largest has %d processors, the runs are from %d to %d", f.largest, f.lowest, f.longest)
	}
	// A serial job is short with a probability of 0.7746.
	var serial []float64
	for _, j := range log.Jobs {
		if j.Procs == 1 {
			serial = append(serial, math.Log(float64(j.Run)+0.5))
		}
	}
	mean, _ := spread(serial)
	near(t, "logarithm of serial run times", mean, 0.7746*4.2*0.94+0.2254*312*0.03, 0.06)
	if f.large < f.run+1.5 {
		t.Errorf("large jobs take exp(%.2f) s, all exp(%.2f): they should take longer", f.large, f.run)
	}
	k := m.kinds()[0]
	w := k.weights()
	noon, sum := 0., 0.
	for i, v := range w {
		if sum += v; i >= 20 && i < 36 {
			noon += v / spans
		}
	}
	near(t, "weights", sum, spans, 1e-9)
	near(t, "jobs between 10 and 18", f.noon, noon, 0.02)
	// A gap is, by the clock that goes as fast as jobs come, log-gamma: E exp(g) = (1-scale)^-shape, less what lies above the bound.
	s := source(9)
	total := 0.
	for range jobs {
		total += math.Exp(k.gap.below(&s, maxGap))
	}
	near(t, "seconds between two jobs", f.gap/(total/jobs), 1, 0.12)
}

// TestGamma compares the distribution that is drawn with the function that says what part of it lies below a number.
func TestGamma(t *testing.T) {
	s := source(4)
	for _, g := range []gamma{{1, 1}, {4.2, 0.94}, {312, 0.03}, {639.1, 0.0156}, {8.1737, 3.9631}} {
		const n = 20_000
		list := make([]float64, n)
		for i := range list {
			list[i] = g.draw(&s)
		}
		mean, deviation := spread(list)
		near(t, "mean", mean/(g.shape*g.scale), 1, 4/math.Sqrt(n*g.shape))
		near(t, "deviation", deviation/(math.Sqrt(g.shape)*g.scale), 1, 0.05)
		slices.Sort(list)
		far := 0.
		for i, x := range list {
			far = max(far, math.Abs(g.part(x)-(float64(i)+0.5)/n))
		}
		if far > 2/math.Sqrt(n) { // Kolmogorov and Smirnov: once in 1,500 times
			t.Errorf("gamma(%g, %g): it is %.4f off", g.shape, g.scale, far)
		}
	}
	near(t, "exponential", gamma{1, 2}.part(3), 1-math.Exp(-1.5), 1e-12)
	near(t, "nothing below 0", gamma{3, 1}.part(-1), 0, 0)
	near(t, "all far above", gamma{3, 1}.part(60), 1, 1e-12)
}

// TestTheAuthors compares with a log that the authors' own program made, of 10,000 jobs on 256 processors: figures of both lie as far apart as two such logs may.
func TestTheAuthors(t *testing.T) {
	dir := os.Getenv("ROOST_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	file, err := os.Open(filepath.Join(dir, "data", "swf", "lublin_256.swf.gz"))
	if os.IsNotExist(err) {
		t.Skipf("SKIPPED: the authors' log is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := swf.Read(z)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := (&Model{Jobs: 100_000, Processors: 256, Seed: 3}).Log()
	if err != nil {
		t.Fatal(err)
	}
	a, b := figuresOf(theirs, 256), figuresOf(ours, 256)
	root := math.Sqrt(float64(a.jobs))
	near(t, "serial jobs", b.serial, a.serial, 4*0.5/root)
	near(t, "powers of two", b.pow2, a.pow2, 4*0.5/root)
	near(t, "logarithm of sizes", b.size, a.size, 4*a.sizes/root)
	near(t, "its deviation", b.sizes, a.sizes, 0.06)
	near(t, "logarithm of run times", b.run, a.run, 4.5*a.runs/root)
	near(t, "its deviation", b.runs, a.runs, 0.12)
	near(t, "logarithm of run times of large jobs", b.large, a.large, 0.5)
	near(t, "jobs between 10 and 18", b.noon, a.noon, 0.06)
	near(t, "seconds between two jobs", b.gap/a.gap, 1, 0.25)
	if a.largest != b.largest {
		t.Errorf("the largest has %d processors, want %d", b.largest, a.largest)
	}
}

// TestTypes holds that there are jobs of both types, in the order in which they come, and that interactive ones are the smaller and shorter ones.
func TestTypes(t *testing.T) {
	log, err := (&Model{Jobs: 20_000, Processors: 128, Seed: 2, Types: true, Overask: 4}).Log()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[int64]*swf.Log{0: {}, 1: {}}
	for i, j := range log.Jobs {
		if i > 0 && j.Submit < log.Jobs[i-1].Submit {
			t.Fatalf("job %d comes before the one in front of it", j.ID)
		}
		if j.Request < j.Run || j.Request > 5*j.Run {
			t.Fatalf("job %d takes %d s and asks for %d", j.ID, j.Run, j.Request)
		}
		kinds[j.Queue].Jobs = append(kinds[j.Queue].Jobs, j)
	}
	interactive, batch := figuresOf(kinds[0], 128), figuresOf(kinds[1], 128)
	if interactive.run >= batch.run || interactive.largest > 45 || batch.largest != 128 {
		t.Errorf("interactive: %+v\nbatch: %+v", interactive, batch)
	}
	near(t, "serial interactive jobs", interactive.serial, 0.1541, 0.02)
	near(t, "serial batch jobs", batch.serial, 0.2927, 0.02)
}

// TestSeed holds that a seed gives one log, of whatever size, and each another.
func TestSeed(t *testing.T) {
	write := func(m Model) string {
		log, err := m.Log()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := log.Write(&text); err != nil {
			t.Fatal(err)
		}
		if again, err := swf.Read(strings.NewReader(text.String())); err != nil || len(again.Jobs) != m.Jobs {
			t.Fatalf("it is no log: %v", err)
		}
		return text.String()
	}
	for _, processors := range []int{1, 2, 3, 8, 256, 100_000, 1 << 30} {
		m := Model{Jobs: 300, Processors: processors, Seed: 7, Types: processors%2 == 0, Overask: 1}
		one := write(m)
		if write(m) != one {
			t.Errorf("%d processors: a second log is another", processors)
		}
		m.Seed++
		if write(m) == one {
			t.Errorf("%d processors: another seed gives the same log", processors)
		}
		for _, j := range must(t, m).Jobs {
			if j.Procs < 1 || j.Procs > int64(processors) || j.Run < 1 {
				t.Fatalf("%d processors: %+v", processors, j)
			}
		}
	}
	for _, bad := range []Model{{Jobs: 0, Processors: 1}, {Jobs: 1}, {Jobs: 1, Processors: 1 << 40}, {Jobs: 1, Processors: 1, Overask: -1}, {Jobs: 1, Processors: 1, Overask: math.NaN()}, {Jobs: 1 << 40, Processors: 1}} {
		if _, err := bad.Log(); !errors.Is(err, roost.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func must(t *testing.T, m Model) *swf.Log {
	log, err := m.Log()
	if err != nil {
		t.Fatal(err)
	}
	return log
}
