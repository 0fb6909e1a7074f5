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
	"github.com/roost-batch/roost/internal/sim/trace"
)

// logFigures are the figures of a log that the tests compare.
type logFigures struct {
	jobs                     int
	serial, pow2             float64 // parts of all jobs: serial, and with a power of two above 1
	size, sizeDeviation      float64 // of parallel jobs: mean and standard deviation of the logarithm
	run, runDeviation        float64 // of all run times: mean and standard deviation of the logarithm
	largeRuns                float64 // mean logarithm of run times of jobs larger than a quarter of the machine
	gap                      float64 // mean seconds between two arrivals
	middayPart               float64 // part of the jobs that arrive between 10 and 18 o'clock
	largest, longest, lowest int64
}

func figuresOf(log *trace.Log, processors int64) logFigures {
	f := logFigures{jobs: len(log.Jobs), lowest: math.MaxInt64}
	var sizes, runs, large []float64
	for i := range log.Jobs {
		j := &log.Jobs[i]
		run := math.Log(float64(j.RunTime))
		switch {
		case j.Processors == 1:
			f.serial++
		case bits.OnesCount64(uint64(j.Processors)) == 1:
			f.pow2++
		}
		if j.Processors > 1 {
			sizes = append(sizes, math.Log2(float64(j.Processors)))
		}
		if runs = append(runs, run); j.Processors > processors/4 {
			large = append(large, run)
		}
		if hour := j.Submit % 86400 / 3600; hour >= 10 && hour < 18 {
			f.middayPart++
		}
		f.largest, f.longest, f.lowest = max(f.largest, j.Processors), max(f.longest, j.RunTime),
			min(f.lowest, j.RunTime)
	}
	n := float64(f.jobs)
	f.serial, f.pow2, f.middayPart = f.serial/n, f.pow2/n, f.middayPart/n
	f.size, f.sizeDeviation = meanAndDeviation(sizes)
	f.run, f.runDeviation = meanAndDeviation(runs)
	f.largeRuns, _ = meanAndDeviation(large)
	f.gap = float64(log.Jobs[len(log.Jobs)-1].Submit) / n
	return f
}

func meanAndDeviation(list []float64) (mean, deviation float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += (v - mean) * (v - mean) / float64(len(list))
	}
	return mean, math.Sqrt(deviation)
}

func isNear(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s: %.4f, want %.4f give or take %.4f", what, got, want, by)
	}
}

// TestMoments compares a long log with its parameters. The bounds are four standard
// errors or more.
func TestMoments(t *testing.T) {
	const jobs = 200_000
	m := LogModel{Jobs: jobs, Processors: 128, Seed: 1}
	log, err := m.DrawLog()
	if err != nil {
		t.Fatal(err)
	}
	f := figuresOf(log, 128)
	isNear(t, "serial jobs", f.serial, 0.244, 0.004)
	// The two stages are [0.8, 4.5] and [4.5, 7]: their means, weighted by their parts.
	// Rounding some of the sizes changes it little.
	isNear(t, "logarithm of sizes", f.size, 0.86*(0.8+4.5)/2+0.14*(4.5+7)/2, 0.02)
	if f.pow2 < 0.576 || f.pow2 > 0.66 { // some sizes are powers of two by chance
		t.Errorf("powers of two: %.3f", f.pow2)
	}
	if f.largest != 128 || f.longest > 162_754 || f.lowest < 1 {
		t.Errorf("the largest has %d processors, the runs are from %d to %d", f.largest, f.lowest, f.longest)
	}
	// A serial job is short with a probability of 0.7746.
	var serial []float64
	for _, j := range log.Jobs {
		if j.Processors == 1 {
			serial = append(serial, math.Log(float64(j.RunTime)+0.5))
		}
	}
	mean, _ := meanAndDeviation(serial)
	isNear(t, "logarithm of serial run times", mean, 0.7746*4.2*0.94+0.2254*312*0.03, 0.06)
	if f.largeRuns < f.run+1.5 {
		t.Errorf("large jobs take exp(%.2f) s, all exp(%.2f): they should take longer", f.largeRuns, f.run)
	}
	k := m.jobTypes()[0]
	w := k.arrivalWeights()
	noon, sum := 0., 0.
	for i, v := range w {
		if sum += v; i >= 20 && i < 36 {
			noon += v / spansPerDay
		}
	}
	isNear(t, "weights", sum, spansPerDay, 1e-9)
	isNear(t, "jobs between 10 and 18", f.middayPart, noon, 0.02)
	// On the clock that runs as fast as jobs arrive, a gap is log-gamma: E exp(g) =
	// (1-scale)^-shape, less what lies above the bound.
	s := randomSource(9)
	total := 0.
	for range jobs {
		total += math.Exp(k.rushGap.drawBelow(&s, maxGap))
	}
	isNear(t, "seconds between two jobs", f.gap/(total/jobs), 1, 0.12)
}

// TestGamma compares drawn numbers with distributionBelow.
func TestGamma(t *testing.T) {
	s := randomSource(4)
	for _, g := range []gammaDistribution{{1, 1}, {4.2, 0.94}, {312, 0.03}, {639.1, 0.0156}, {8.1737, 3.9631}} {
		const n = 20_000
		list := make([]float64, n)
		for i := range list {
			list[i] = g.draw(&s)
		}
		mean, deviation := meanAndDeviation(list)
		isNear(t, "mean", mean/(g.shape*g.scale), 1, 4/math.Sqrt(n*g.shape))
		isNear(t, "deviation", deviation/(math.Sqrt(g.shape)*g.scale), 1, 0.05)
		slices.Sort(list)
		far := 0.
		for i, x := range list {
			far = max(far, math.Abs(g.distributionBelow(x)-(float64(i)+0.5)/n))
		}
		if far > 2/math.Sqrt(n) { // Kolmogorov-Smirnov: exceeded once in 1,500 runs
			t.Errorf("gamma(%g, %g): it is %.4f off", g.shape, g.scale, far)
		}
	}
	isNear(t, "exponential", gammaDistribution{1, 2}.distributionBelow(3), 1-math.Exp(-1.5), 1e-12)
	isNear(t, "nothing below 0", gammaDistribution{3, 1}.distributionBelow(-1), 0, 0)
	isNear(t, "all far above", gammaDistribution{3, 1}.distributionBelow(60), 1, 1e-12)
}

// TestAuthorsLog compares a log with one of the authors' own program. That log has 10,000
// jobs on 256 processors. The bounds are the differences that two such logs may have.
func TestAuthorsLog(t *testing.T) {
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
	theirs, err := trace.Read(z)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := (&LogModel{Jobs: 100_000, Processors: 256, Seed: 3}).DrawLog()
	if err != nil {
		t.Fatal(err)
	}
	a, b := figuresOf(theirs, 256), figuresOf(ours, 256)
	root := math.Sqrt(float64(a.jobs))
	isNear(t, "serial jobs", b.serial, a.serial, 4*0.5/root)
	isNear(t, "powers of two", b.pow2, a.pow2, 4*0.5/root)
	isNear(t, "logarithm of sizes", b.size, a.size, 4*a.sizeDeviation/root)
	isNear(t, "its deviation", b.sizeDeviation, a.sizeDeviation, 0.06)
	isNear(t, "logarithm of run times", b.run, a.run, 4.5*a.runDeviation/root)
	isNear(t, "its deviation", b.runDeviation, a.runDeviation, 0.12)
	isNear(t, "logarithm of run times of large jobs", b.largeRuns, a.largeRuns, 0.5)
	isNear(t, "jobs between 10 and 18", b.middayPart, a.middayPart, 0.06)
	isNear(t, "seconds between two jobs", b.gap/a.gap, 1, 0.25)
	if a.largest != b.largest {
		t.Errorf("the largest has %d processors, want %d", b.largest, a.largest)
	}
}

// TestTypes checks that a log has jobs of both types, in order of arrival. Interactive
// jobs are the smaller and shorter ones.
func TestTypes(t *testing.T) {
	log, err := (&LogModel{Jobs: 20_000, Processors: 128, Seed: 2, Types: true, OverestimateFactor: 4}).DrawLog()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[int64]*trace.Log{0: {}, 1: {}}
	for i, j := range log.Jobs {
		if i > 0 && j.Submit < log.Jobs[i-1].Submit {
			t.Fatalf("job %d comes before the one in front of it", j.ID)
		}
		if j.RequestedTime < j.RunTime || j.RequestedTime > 5*j.RunTime {
			t.Fatalf("job %d takes %d s and asks for %d", j.ID, j.RunTime, j.RequestedTime)
		}
		kinds[j.Queue].Jobs = append(kinds[j.Queue].Jobs, j)
	}
	interactive, batch := figuresOf(kinds[0], 128), figuresOf(kinds[1], 128)
	if interactive.run >= batch.run || interactive.largest > 45 || batch.largest != 128 {
		t.Errorf("interactive: %+v\nbatch: %+v", interactive, batch)
	}
	isNear(t, "serial interactive jobs", interactive.serial, 0.1541, 0.02)
	isNear(t, "serial batch jobs", batch.serial, 0.2927, 0.02)
}

// TestSeed checks that a seed gives one log, of any size, and that another seed gives
// another.
func TestSeed(t *testing.T) {
	write := func(m LogModel) string {
		log, err := m.DrawLog()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := log.Write(&text); err != nil {
			t.Fatal(err)
		}
		if again, err := trace.Read(strings.NewReader(text.String())); err != nil || len(again.Jobs) != m.Jobs {
			t.Fatalf("it is no log: %v", err)
		}
		return text.String()
	}
	for _, processors := range []int{1, 2, 3, 8, 256, 100_000, 1 << 30} {
		m := LogModel{Jobs: 300, Processors: processors, Seed: 7, Types: processors%2 == 0, OverestimateFactor: 1}
		one := write(m)
		if write(m) != one {
			t.Errorf("%d processors: a second log is another", processors)
		}
		m.Seed++
		if write(m) == one {
			t.Errorf("%d processors: another seed gives the same log", processors)
		}
		for _, j := range drawOrFail(t, m).Jobs {
			if j.Processors < 1 || j.Processors > int64(processors) || j.RunTime < 1 {
				t.Fatalf("%d processors: %+v", processors, j)
			}
		}
	}
	for _, bad := range []LogModel{{Jobs: 0, Processors: 1}, {Jobs: 1}, {Jobs: 1, Processors: 1 << 40},
		{Jobs: 1, Processors: 1, OverestimateFactor: -1}, {Jobs: 1, Processors: 1, OverestimateFactor: math.NaN()},
		{Jobs: 1 << 40, Processors: 1}} {
		if _, err := bad.DrawLog(); !errors.Is(err, roost.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func drawOrFail(t *testing.T, m LogModel) *trace.Log {
	log, err := m.DrawLog()
	if err != nil {
		t.Fatal(err)
	}
	return log
}
