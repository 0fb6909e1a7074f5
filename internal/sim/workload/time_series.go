package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// PoolSample is the state of a pool at an instant.
type PoolSample struct {
	At                     time.Duration
	Waiting, Running, Over int // numbers of tasks
	Used                   roost.MilliCPU
	By                     []roost.MilliCPU // CPU in use by owner, in the order of TimeSeries.Owners
}

// TimeSeries is the course of a pool, sampled at intervals. The interval starts at a few
// seconds and doubles as time passes, so the number of samples is bounded.
type TimeSeries struct {
	Owners  []string
	Step    time.Duration
	Samples []PoolSample
}

// Bounds of a time series.
const (
	initialStep = 5 * time.Second
	maxSamples  = 1200
)

// NewTimeSeries returns a time series without samples.
func NewTimeSeries(p *pool.Pool) *TimeSeries {
	return &TimeSeries{Owners: p.Owners(), Step: initialStep}
}

// NextSample returns the time of the next sample.
func (c *TimeSeries) NextSample() time.Duration { return time.Duration(len(c.Samples)) * c.Step }

// AddSample adds a sample.
func (c *TimeSeries) AddSample(s pool.StateSample) {
	i := PoolSample{At: s.At, Waiting: s.Waiting, Running: s.Running, Over: s.Ended, Used: s.Used.CPU,
		By: make([]roost.MilliCPU, len(c.Owners))}
	for k, who := range c.Owners {
		i.By[k] = s.UsedByOwner[who]
	}
	if c.Samples = append(c.Samples, i); len(c.Samples) < maxSamples {
		return
	}
	for k := range maxSamples / 2 {
		c.Samples[k] = c.Samples[2*k]
	}
	c.Samples, c.Step = c.Samples[:maxSamples/2], 2*c.Step
}

// WaitTimes is the distribution of tasks' waits.
type WaitTimes struct {
	Tasks                       int
	Mean, Median, P95, P99, Max time.Duration
}

// SummarizeWaits computes the distribution of waits.
func SummarizeWaits(all []time.Duration) (w WaitTimes) {
	if w.Tasks = len(all); w.Tasks == 0 {
		return w
	}
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare[time.Duration])
	var sum float64
	for _, d := range sorted {
		sum += float64(d)
	}
	at := func(part float64) time.Duration { return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)] }
	w.Mean, w.Median, w.P95, w.P99, w.Max = time.Duration(sum/float64(len(sorted))), at(0.5), at(0.95), at(0.99),
		sorted[len(sorted)-1]
	return w
}
