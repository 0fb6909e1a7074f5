package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Parameters of native histograms: each bucket is at most a tenth wider than the one
// before, and a histogram has at most so many of them.
const (
	nativeBucketFactor = 1.1
	maxNativeBuckets   = 100
	minNativeReset     = time.Hour
)

// Histogram is the histograms of a family, one for each combination of its label values.
// A nil histogram observes nothing.
type Histogram struct {
	family Family
	series []prometheus.Observer
}

// Histogram registers a family of histograms in seconds; its labels have closed lists of
// values.
func (r *Registry) Histogram(name, help string, buckets []float64, labels ...Label) *Histogram {
	if r == nil {
		return nil
	}
	h := &Histogram{family: r.add(Family{Name: name, Type: HistogramType, Help: help, Labels: labels,
		Buckets: buckets})}
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: h.family.Name, Help: help, Buckets: buckets, NativeHistogramBucketFactor: nativeBucketFactor,
		NativeHistogramMaxBucketNumber: maxNativeBuckets, NativeHistogramMinResetDuration: minNativeReset,
	}, h.family.labelNames())
	r.registry.MustRegister(vec)
	for _, values := range h.family.combinations() {
		h.series = append(h.series, vec.WithLabelValues(values...))
	}
	return h
}

// Observe adds a duration to the histogram of the label values with these indexes. A
// negative one counts as 0: clocks go back.
func (h *Histogram) Observe(d time.Duration, at ...int) {
	if h != nil {
		h.series[h.family.index(at)].Observe(max(d, 0).Seconds())
	}
}

// ObserveSince observes the time since an instant; see Now.
func (h *Histogram) ObserveSince(began time.Time, at ...int) {
	if h != nil {
		h.Observe(time.Since(began), at...)
	}
}

// Now returns the time for ObserveSince, and does not look at the clock for nobody.
func (h *Histogram) Now() (now time.Time) {
	if h != nil {
		now = time.Now()
	}
	return now
}

// The classic buckets, in seconds.
var (
	// fastBuckets are for what takes milliseconds: a write to a disk, a cycle.
	fastBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 10}
	// taskBuckets are for what tasks do: wait and run.
	taskBuckets = []float64{1, 10, 30, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600}
)
