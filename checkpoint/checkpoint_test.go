package checkpoint

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// expectedRunTime returns Daly's expected run time of a second of work, in seconds. It is
// equation 20 without the restart, which does not change the optimum.
func expectedRunTime(interval, cost, mtbf float64) float64 {
	return mtbf * (math.Exp((interval+cost)/mtbf) - 1) / interval
}

// bestInterval finds the interval with the least expected run time by golden section.
func bestInterval(cost, mtbf float64) float64 {
	low, high := 1e-9*mtbf, 10*mtbf
	for range 300 {
		a, b := high-(high-low)/math.Phi, low+(high-low)/math.Phi
		if expectedRunTime(a, cost, mtbf) < expectedRunTime(b, cost, mtbf) {
			high = b
		} else {
			low = a
		}
	}
	return (low + high) / 2
}

// youngInterval returns the first-order optimum of the time between two checkpoints. The
// source is J. W. Young, A first order approximation to the optimum checkpoint interval,
// CACM 17(9), 1974. It is good while a checkpoint costs little compared with the mean
// time between failures.
func youngInterval(cost, mtbf time.Duration) time.Duration {
	return clampInterval(math.Sqrt(2 * seconds(cost) * seconds(mtbf)))
}

// TestDaly compares the formula with the true optimum. Where checkpoints are cheap the
// interval is right; elsewhere the time lost by using it is almost nothing.
func TestDaly(t *testing.T) {
	for _, mtbf := range []time.Duration{time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
		for _, part := range []float64{1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1, 1.5} {
			cost := time.Duration(part * float64(mtbf))
			got, want := DalyInterval(cost, mtbf).Seconds(), bestInterval(cost.Seconds(), mtbf.Seconds())
			off := math.Abs(got-want) / want
			lost := expectedRunTime(got, cost.Seconds(), mtbf.Seconds())/expectedRunTime(want, cost.Seconds(),
				mtbf.Seconds()) - 1
			if part <= 0.1 && off > 0.002 || lost > 0.002 {
				t.Errorf("cost %v, MTBF %v: got %.3f s, want %.3f s (%.2g off, %.2g of the time lost)", cost, mtbf, got,
					want, off, lost)
			}
			young := youngInterval(cost, mtbf).Seconds()
			if expectedRunTime(young, cost.Seconds(), mtbf.Seconds()) < expectedRunTime(got, cost.Seconds(),
				mtbf.Seconds())*(1-1e-9) {
				t.Errorf("cost %v, MTBF %v: Young's %.3f s is better than Daly's %.3f s", cost, mtbf, young, got)
			}
		}
	}
}

func TestIntervalBounds(t *testing.T) {
	day := 24 * time.Hour
	for _, test := range []struct{ cost, mtbf, shortest, longest, want time.Duration }{
		{0, day, 0, 0, MinInterval},
		{time.Millisecond, day, 0, 0, MinInterval},
		{time.Hour, 100 * day, 0, 0, MaxInterval},
		{-time.Hour, -day, 0, 0, MinInterval},
		// longer than the mean time between failures: one checkpoint in that time
		{3 * time.Hour, time.Hour, 0, 0, time.Hour},
		{time.Second, day, time.Hour, 0, time.Hour},
		{time.Second, day, time.Hour, time.Minute, time.Hour},
		{math.MaxInt64, math.MaxInt64, 0, 0, MaxInterval},
	} {
		if got := Interval(test.cost, test.mtbf, test.shortest, test.longest); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

func TestNextCheckpoint(t *testing.T) {
	month := 30 * 24 * time.Hour
	for _, test := range []struct {
		asked, last, cost time.Duration
		failed            int
		want              time.Duration
		none              bool
	}{
		{asked: -1, none: true},
		{asked: time.Minute, last: time.Hour, want: time.Hour + time.Minute},
		{last: 0, want: MinInterval},
		{last: time.Hour, cost: time.Second, want: time.Hour + Interval(time.Second, month, 0, 0)},
		{asked: time.Minute, last: time.Hour, failed: 3, want: time.Hour + 8*time.Minute},
		{asked: time.Minute, failed: 1000, want: MaxInterval},
		{asked: 10 * time.Hour, failed: 5, want: 10 * time.Hour},
	} {
		got, ok := NextCheckpoint(test.asked, test.last, test.cost, month, test.failed)
		if got != test.want || ok == test.none {
			t.Errorf("%+v: got %v, %v", test, got, ok)
		}
	}
}

// TestMTBF makes machines fail at random and compares the estimate from their history
// with the true rate.
func TestMTBF(t *testing.T) {
	if got := (FailureHistory{}).MTBF(); got != PriorMTBF {
		t.Errorf("of an unknown machine: got %v, want %v", got, PriorMTBF)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, truth := range []time.Duration{6 * time.Hour, 2 * 24 * time.Hour, 15 * 24 * time.Hour} {
		var h FailureHistory
		for h.Up < HistoryHalfLife {
			h = h.After(time.Duration(random.ExpFloat64()*float64(truth)), 1)
		}
		if got := h.MTBF(); got < truth/2 || got > 2*truth+PriorMTBF/8 {
			t.Errorf("machine that fails every %v: got %v", truth, got)
		}
		quiet := h
		for range 400 {
			quiet = quiet.After(24*time.Hour, 0)
		}
		if quiet.MTBF() < 10*24*time.Hour || quiet.MTBF() < h.MTBF() {
			t.Errorf("after a year without failure: got %v, and %v before", quiet.MTBF(), h.MTBF())
		}
	}
	if worse := (FailureHistory{}).After(time.Hour, 5); worse.MTBF() >= PriorMTBF {
		t.Errorf("after five failures in an hour: got %v", worse.MTBF())
	}
}
