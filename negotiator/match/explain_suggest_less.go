package match

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/negotiator/timeline"
)

// Where less of one resource is not enough, a request may ask for less of two, for less
// time, or for a smaller gang. Each is checked on the machines as the plan has left them.

// twoShortages is a machine that lacks two resources, of which it has this much.
type twoShortages struct {
	first, second resourceDimension
	have          [2]int64
	fractionLeft  float64 // 0 to 1: how much of what was asked for would be left
}

// addMachine records a machine that lacks two resources if less of them is a smaller
// change than on those before. Machines whose sums are not exact are skipped.
func (q *twoShortages) addMachine(p *negotiationCycle, c *RequestClass, at int, s *resourceShortage) {
	if s.dimensions != 2 || p.unitsFreeAt(at) != nil {
		return
	}
	one := twoShortages{first: s.first, fractionLeft: 1}
	for d := range dimensions {
		if s.short[d] && d != s.first {
			one.second = d
		}
	}
	for i, d := range [...]resourceDimension{one.first, one.second} {
		one.have[i] = s.have[d]
		one.fractionLeft *= float64(max(s.have[d], 0)) / float64(d.amountOf(c.Resources))
	}
	if one.fractionLeft > q.fractionLeft {
		*q = one
	}
}

// suggestion advises to ask for less of both.
func (q *twoShortages) suggestion(c *RequestClass, effect string) suggestion {
	return suggestion{
		text: fmt.Sprintf("with %s and %s instead of %s and %s %s", q.first.amountText(q.have[0], true),
			q.second.amountText(q.have[1], true),
			q.first.amountText(q.first.amountOf(c.Resources), false),
			q.second.amountText(q.second.amountOf(c.Resources), false), effect),
		fractionLeft: q.fractionLeft,
	}
}

// minSuggestedWalltime is the shortest walltime that is suggested.
const minSuggestedWalltime = time.Minute

// longestRuntimeNow returns the longest run time, in seconds, with which a unit could
// start now beside later reservations.
func (p startExplainer) longestRuntimeNow(w *requestState, at int) (longest timeline.UnixSeconds) {
	if w.Gang > 1 {
		return 0
	}
	r, whole := unitsWeight(w.Class.Resources, w.Class.AppClass, 1), w.expectedRuntime()
	view := p.backfill().timelineFor(w, at)
	if f := p.timelines[at]; f != nil {
		whole = f.runtimeBesideReservations(w)
	}
	for _, h := range view.Reservations {
		if length := h.From - p.now; length > longest && length < whole && view.UnitsFrom(p.now, length, r, 1) > 0 {
			longest = length
		}
	}
	return longest
}

// suggestShorter suggests a shorter walltime or a smaller gang.
func (t *waitExplainer) suggestShorter() (all []suggestion) {
	w := t.request
	if d := time.Duration(t.longestNow) * time.Second; d >= minSuggestedWalltime {
		all = append(all, suggestion{fmt.Sprintf("with a walltime of at most %s it would start now", durationText(d)),
			0.9})
	}
	if w.waitReasonKind == PartOnly && w.partOf == nil && t.gangUnitsNow > 0 && t.gangUnitsNow < w.Gang {
		all = append(all, suggestion{
			fmt.Sprintf("with %s instead of %d that start together it would start now",
				pluralOf(t.gangUnitsNow, "task", "tasks"), w.Gang), float64(t.gangUnitsNow) / float64(w.Gang),
		})
	}
	return all
}

// unitsFittingNow returns how many units of a request a machine has room for after the
// plan, at least.
func (p startExplainer) unitsFittingNow(w *requestState, at int) int {
	if p.unitsFreeAt(at) != nil {
		return p.backfill().fitsBesideReservations(w, at, 1)
	}
	return p.backfill().fitsBesideReservations(w, at,
		w.unitsPerMachine(min(w.Gang, w.Class.Resources.TimesIn(p.roomBySums(w.Class, at)))))
}
