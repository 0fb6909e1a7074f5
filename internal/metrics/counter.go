package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter is the counters of a family, one for each combination of its label values.
// Adding is one atomic operation. A nil counter counts nothing.
type Counter struct {
	family Family
	series []prometheus.Counter
}

// Counter registers a family of counters; its labels have closed lists of values.
func (r *Registry) Counter(name, help string, labels ...Label) *Counter {
	if r == nil {
		return nil
	}
	c := &Counter{family: r.add(Family{Name: name, Type: CounterType, Help: help, Labels: labels})}
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.family.Name, Help: help}, c.family.labelNames())
	r.registry.MustRegister(vec)
	for _, values := range c.family.combinations() {
		c.series = append(c.series, vec.WithLabelValues(values...))
	}
	return c
}

// Inc adds one to the counter of the label values with these indexes.
func (c *Counter) Inc(at ...int) { c.Add(1, at...) }

// Add adds v, which must not be negative.
func (c *Counter) Add(v float64, at ...int) {
	if c != nil && v > 0 {
		c.series[c.family.index(at)].Add(v)
	}
}

// AddSeconds adds a duration in seconds; a negative one adds nothing.
func (c *Counter) AddSeconds(d time.Duration, at ...int) { c.Add(d.Seconds(), at...) }
