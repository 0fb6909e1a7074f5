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

// The start of a request without a reservation is not certain, because others may come
// before it. Two estimates are made.
//
// The first is by ends. What runs on the capable machines ends by its walltime, or is
// likely to end when similar tasks did (see explain_predicted_runtime.go). By then the
// units before the request have taken their part of what becomes free. The result is the
// start if tasks take as long as they may; most take less.
//
// The second is by rate. The units before the request are through when as many cores as
// they want have been granted at the recent rate. Then its turn comes when the next unit
// starts that is at least as large as one of its own, on a machine that can run it.
// Starts before the request waited do not count, because a pool that fills up grants much
// that it does not grant again. A rate also says nothing of a time much longer than its
// window.
//
// The earlier of the two is the estimate.

const (
	minRateWindow  = time.Minute      // shortest window of a rate
	maxRateWindow  = 10 * time.Minute // longest window of a rate, and how long starts are remembered
	maxRateHorizon = 20               // a rate is used for up to this many windows
	// machines that are sampled for the ends of their tasks; what becomes free on the
	// others is assumed to be similar
	maxSampledMachines = 256
)

// estimateStart estimates when a request without a reservation starts.
func (p startExplainer) estimateStart(t *waitExplainer) StartEstimate {
	ends, known := p.estimateByEnds(t)
	rate, why, ok := p.estimateByRate(t)
	switch {
	case ok && (!known || rate < ends):
		return p.startText(rate, ByRate, why)
	case known:
		basis := "by then the walltimes of enough tasks there are over, "
		if slices.ContainsFunc(t.capableMachines, func(at int) bool { return p.Machines[at].usesPredictions }) {
			basis = "by then enough tasks there have ended, by walltimes and by how long similar tasks took, "
		}
		return p.startText(ends, ByPrediction, basis+p.queuePositionText(t.request))
	}
	return StartEstimate{Basis: why}
}

// queuePositionText says how many tasks come before a request.
func (p startExplainer) queuePositionText(w *requestState) string {
	if w.unitsAhead == 0 {
		return "with none before it"
	}
	return "with " + pluralOf(w.unitsAhead, "task", "tasks") + " before it"
}

// estimateByRate estimates when a request starts if tasks continue to start at the recent
// rate. If it cannot, it says why not.
func (p startExplainer) estimateByRate(t *waitExplainer) (at int64, why string, ok bool) {
	w, r := t.request, t.request.Class.Resources
	from := max(w.WaitingSince, p.now-int64(maxRateWindow/time.Second))
	window := time.Duration(p.now-from) * time.Second
	if w.WaitingSince == 0 || window < minRateWindow {
		return 0, "it has waited for less than a minute, too short to estimate how fast tasks start", false
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
		return 0, fmt.Sprintf("it is unknown when the tasks there end, and in the last %s no task as large has "+
			"started on a machine that can run it", durationText(window)), false
	}
	seconds := window.Seconds()
	took := w.weightAhead/cores*seconds + float64(max(w.Gang, 1))/float64(like)*seconds
	if took > maxRateHorizon*seconds {
		return 0, fmt.Sprintf("as tasks have started in the last %s, it would take more than %s", durationText(window),
			durationText(maxRateHorizon*window)), false
	}
	why = fmt.Sprintf("if tasks continue to start there as in the last %s (%s as large), %s", durationText(window),
		pluralOf(like, "task", "tasks"), p.queuePositionText(w))
	return p.now + int64(math.Ceil(took)), why, true
}

// startMachines returns the machine numbers of RecentStarts, -1 for a machine that is
// gone.
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

// estimateByEnds estimates when a request starts if running tasks take as long as they
// may, or as predicted.
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
		return 0, false // the sums of machines do not show what becomes free of each GPU
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

// durationText formats a duration in whole seconds, minutes or hours.
func durationText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}
