package match

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// When something starts for which nothing is held is not certain: others may come before
// it. Two things tell of it.
//
// What runs on the machines that could run it has to end by its walltime, or is likely to
// when tasks like it did (see expect.go). By then those before it have taken their part
// of what falls free, as far as there is more of it; that is when it starts if tasks take
// as long as they may. Most take less.
//
// And what has started lately tells how fast that goes: those before it are through when
// as many cores as they want have been given away, and then it is its turn when the next
// unit starts that is at least as large as one of its own, on a machine that can run it.
// What started before the request waited does not count: a pool that fills up gives away
// much that it does not give away again. Nor does a rate tell of a time that is much
// longer than the one it is of.
//
// The earlier of the two is told.

const (
	minRateWindow  = time.Minute      // of which a rate is told
	maxRateWindow  = 10 * time.Minute // of which starts are remembered
	maxRateHorizon = 20               // a rate tells of so many times the time that it is of
	// machines are looked at for the ends of what runs there; what falls free on the
	// others is taken to be alike
	maxSampledMachines = 256
)

// estimateStart says when a want may start for which nothing is held.
func (p startExplainer) estimateStart(t *waitExplainer) StartEstimate {
	ends, known := p.estimateByEnds(t)
	rate, why, ok := p.estimateByRate(t)
	switch {
	case ok && (!known || rate < ends):
		return p.startText(rate, ByRate, why)
	case known:
		basis := "by then the walltimes of enough of what runs there are over, "
		if slices.ContainsFunc(t.capableMachines, func(at int) bool { return p.Machines[at].usesPredictions }) {
			basis = "by then enough of what runs there is over, by walltimes and by how long tasks like it took, "
		}
		return p.startText(ends, ByPrediction, basis+p.queuePositionText(t.request))
	}
	return StartEstimate{Basis: why}
}

// queuePositionText says how many come before a want.
func (p startExplainer) queuePositionText(w *requestState) string {
	if w.unitsAhead == 0 {
		return "with none before it"
	}
	return "with " + pluralOf(w.unitsAhead, "task", "tasks") + " before it"
}

// estimateByRate is when a want starts if starts go on as they have; if that cannot be
// told, why not.
func (p startExplainer) estimateByRate(t *waitExplainer) (at int64, why string, ok bool) {
	w, r := t.request, t.request.Class.Resources
	from := max(w.WaitingSince, p.now-int64(maxRateWindow/time.Second))
	window := time.Duration(p.now-from) * time.Second
	if w.WaitingSince == 0 || window < minRateWindow {
		return 0, "it waits for less than a minute, too short to tell how fast others start", false
	}
	able := make([]bool, len(p.Machines))
	for _, at := range t.capableMachines {
		able[at] = true
	}
	cores, like := 0.0, 0
	where := p.startMachines()
	for i := range p.RecentStarts {
		s := &p.RecentStarts[i]
		if s.At <= from || s.At > p.now {
			continue
		}
		cores += fairshare.CoresWorth(s.Resources, p.poolTotal) * float64(s.Units)
		if at := where[i]; at >= 0 && able[at] && r.FitsIn(s.Resources) {
			like += s.Units
		}
	}
	if like == 0 {
		return 0, fmt.Sprintf("nobody knows when what runs there ends, and in the last %s nothing as large has "+
			"started on a machine that can run it", durationText(window)), false
	}
	seconds := window.Seconds()
	took := w.weightAhead/cores*seconds + float64(max(w.Gang, 1))/float64(like)*seconds
	if took > maxRateHorizon*seconds {
		return 0, fmt.Sprintf("as tasks have started in the last %s, it would take more than %s", durationText(window),
			durationText(maxRateHorizon*window)), false
	}
	why = fmt.Sprintf("if tasks go on to start there as in the last %s (%s as large), %s", durationText(window),
		pluralOf(like, "task", "tasks"), p.queuePositionText(w))
	return p.now + int64(math.Ceil(took)), why, true
}

// startMachines are the numbers of the machines of the starts, -1 for one that is gone.
func (p startExplainer) startMachines() []int32 {
	if p.startMachineNumbers == nil && len(p.RecentStarts) > 0 {
		p.startMachineNumbers = make([]int32, len(p.RecentStarts))
		for i := range p.RecentStarts {
			p.startMachineNumbers[i] = -1
			if m := p.byName[p.RecentStarts[i].Machine]; m != nil {
				p.startMachineNumbers[i] = m.number
			}
		}
	}
	return p.startMachineNumbers
}

// estimateByEnds is when a want starts if what runs takes as long as it may, or is
// expected to.
func (p startExplainer) estimateByEnds(t *waitExplainer) (at int64, ok bool) {
	w, size := t.request, max(t.request.Gang, 1)
	if w.unitWeight <= 0 || w.Class.AppClass == gpu.StreamClass {
		return 0, false
	}
	r := unitsWeight(w.Class.minimumSums, w.Class.AppClass, 1)
	if w.feasible == nil {
		w.feasible = t.capableMachines
	}
	if w.unitsAhead == 0 && size == 1 {
		at, _, ok = p.backfill().earliestUnitStart(w, r)
		return at, ok && at > p.now
	}
	if r.GPUs > 0 || w.Class.Resources.GPUMemory > 0 {
		return 0, false // what falls free of each GPU the sums of machines do not say
	}
	stride := (len(t.capableMachines) + maxSampledMachines - 1) / maxSampledMachines
	var machines []*timeline.MachineCapacity
	for i := 0; i < len(t.capableMachines); i += stride {
		machines = append(machines, p.backfill().timelineFor(w, t.capableMachines[i]))
	}
	units := math.Ceil(w.weightAhead/w.unitWeight) + float64(size)
	at, _, ok = timeline.EarliestFit(machines, p.now, w.expectedRuntime(), r, int(math.Ceil(units/float64(stride))))
	return at, ok && at > p.now
}

// durationText writes a length of time of which nobody wants to know the seconds.
func durationText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}
