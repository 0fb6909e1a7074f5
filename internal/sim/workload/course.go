package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// Instant is how a pool stands at one.
type Instant struct {
	At                     time.Duration
	Waiting, Running, Over int // tasks
	Used                   roost.MilliCPU
	By                     []roost.MilliCPU // by owner, in the order of Course.Owners
}

// Course is how a pool has fared, looked at from time to time: at first every few seconds, and at greater distances the longer it takes, so that there are never
// more than so many instants however long that is.
type Course struct {
	Owners   []string
	Step     time.Duration
	Instants []Instant
}

// Bounds of a course.
const (
	firstStep    = 5 * time.Second
	mostInstants = 1200
)

// NewCourse begins one.
func NewCourse(p *pool.Pool) *Course { return &Course{Owners: p.Owners(), Step: firstStep} }

// Next is when the pool is to be looked at next.
func (c *Course) Next() time.Duration { return time.Duration(len(c.Instants)) * c.Step }

// Look notes how the pool stands.
func (c *Course) Look(s pool.State) {
	i := Instant{At: s.At, Waiting: s.Waiting, Running: s.Running, Over: s.Over, Used: s.Used.CPU, By: make([]roost.MilliCPU, len(c.Owners))}
	for k, who := range c.Owners {
		i.By[k] = s.By[who]
	}
	if c.Instants = append(c.Instants, i); len(c.Instants) < mostInstants {
		return
	}
	for k := range mostInstants / 2 {
		c.Instants[k] = c.Instants[2*k]
	}
	c.Instants, c.Step = c.Instants[:mostInstants/2], 2*c.Step
}

// Waits are how long tasks have waited.
type Waits struct {
	Tasks                        int
	Mean, Median, P95, P99, Most time.Duration
}

// Summarise reads them off.
func Summarise(all []time.Duration) (w Waits) {
	if w.Tasks = len(all); w.Tasks == 0 {
		return w
	}
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare[time.Duration])
	var sum float64
	for _, d := range sorted {
		sum += float64(d)
	}
	at := func(part float64) time.Duration { return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)] }
	w.Mean, w.Median, w.P95, w.P99, w.Most = time.Duration(sum/float64(len(sorted))), at(0.5), at(0.95), at(0.99), sorted[len(sorted)-1]
	return w
}
