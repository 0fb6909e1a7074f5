package match

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/forecast"
	"github.com/roost-batch/roost/negotiator/share"
)

// When something starts for which nothing is held is not certain: others may come before it. Two things tell of it.
//
// What runs on the machines that could run it has to end by its walltime, or is likely to when tasks like it did (see expect.go). By then those before it have taken their part of what falls free, as far as
// there is more of it; that is when it starts if tasks take as long as they may. Most take less.
//
// And what has started lately tells how fast that goes: those before it are through when as many cores as they want have been given away, and then it is
// its turn when the next unit starts that is at least as large as one of its own, on a machine that can run it. What started before the request waited does
// not count: a pool that fills up gives away much that it does not give away again. Nor does a rate tell of a time that is much longer than the one it is of.
//
// The earlier of the two is told.

const (
	leastWindow = time.Minute      // of which a rate is told
	mostWindow  = 10 * time.Minute // of which starts are remembered
	mostAhead   = 20               // a rate tells of so many times the time that it is of
	maxSampled  = 256              // machines are looked at for the ends of what runs there; what falls free on the others is taken to be alike
)

// foretell says when a want may start for which nothing is held.
func (p *plan) foretell(t *tally) Estimate {
	ends, known := p.byEnds(t)
	rate, why, ok := p.byRate(t)
	switch {
	case ok && (!known || rate < ends):
		return p.starts(rate, ByRate, why)
	case known:
		basis := "by then the walltimes of enough of what runs there are over, "
		if slices.ContainsFunc(t.able, func(at int) bool { return p.Machines[at].guessed }) {
			basis = "by then enough of what runs there is over, by walltimes and by how long tasks like it took, "
		}
		return p.starts(ends, ByPrediction, basis+p.behind(t.want))
	}
	return Estimate{Basis: why}
}

// behind says how many come before a want.
func (p *plan) behind(w *want) string {
	if w.ahead == 0 {
		return "with none before it"
	}
	return "with " + plural(w.ahead, "task", "tasks") + " before it"
}

// byRate is when a want starts if starts go on as they have; if that cannot be told, why not.
func (p *plan) byRate(t *tally) (at int64, why string, ok bool) {
	w, r := t.want, t.want.Class.Resources
	from := max(w.Since, p.now-int64(mostWindow/time.Second))
	window := time.Duration(p.now-from) * time.Second
	if w.Since == 0 || window < leastWindow {
		return 0, "it waits for less than a minute, too short to tell how fast others start", false
	}
	able := make([]bool, len(p.Machines))
	for _, at := range t.able {
		able[at] = true
	}
	cores, like := 0.0, 0
	where := p.startedOn()
	for i := range p.Starts {
		s := &p.Starts[i]
		if s.At <= from || s.At > p.now {
			continue
		}
		cores += share.Weight(s.Resources, p.total) * float64(s.Units)
		if at := where[i]; at >= 0 && able[at] && r.Fits(s.Resources) {
			like += s.Units
		}
	}
	if like == 0 {
		return 0, fmt.Sprintf("nobody knows when what runs there ends, and in the last %s nothing as large has started on a machine that can run it", span(window)), false
	}
	seconds := window.Seconds()
	took := w.weightAhead/cores*seconds + float64(max(w.Gang, 1))/float64(like)*seconds
	if took > mostAhead*seconds {
		return 0, fmt.Sprintf("as tasks have started in the last %s, it would take more than %s", span(window), span(mostAhead*window)), false
	}
	why = fmt.Sprintf("if tasks go on to start there as in the last %s (%s as large), %s", span(window), plural(like, "task", "tasks"), p.behind(w))
	return p.now + int64(math.Ceil(took)), why, true
}

// startedOn are the numbers of the machines of the starts, -1 for one that is gone.
func (p *plan) startedOn() []int32 {
	if p.started == nil && len(p.Starts) > 0 {
		p.started = make([]int32, len(p.Starts))
		for i := range p.Starts {
			p.started[i] = -1
			if m := p.byName[p.Starts[i].Machine]; m != nil {
				p.started[i] = m.at
			}
		}
	}
	return p.started
}

// byEnds is when a want starts if what runs takes as long as it may, or is expected to.
func (p *plan) byEnds(t *tally) (at int64, ok bool) {
	w, size := t.want, max(t.want.Gang, 1)
	if w.unit <= 0 || w.Class.App == gpu.Stream {
		return 0, false
	}
	r := weight(w.Class.sums, w.Class.App, 1)
	if w.reach == nil {
		w.reach = t.able
	}
	if w.ahead == 0 && size == 1 {
		at, _, ok = p.earliestOne(w, r)
		return at, ok && at > p.now
	}
	if r.GPUs > 0 || w.Class.Resources.GPUMemory > 0 {
		return 0, false // what falls free of each GPU the sums of machines do not say
	}
	stride := (len(t.able) + maxSampled - 1) / maxSampled
	var machines []*forecast.Machine
	for i := 0; i < len(t.able); i += stride {
		machines = append(machines, p.view(w, t.able[i]))
	}
	units := math.Ceil(w.weightAhead/w.unit) + float64(size)
	at, _, ok = forecast.Earliest(machines, p.now, w.length(), r, int(math.Ceil(units/float64(stride))))
	return at, ok && at > p.now
}

// span writes a length of time of which nobody wants to know the seconds.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}
