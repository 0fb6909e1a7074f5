package match

import (
	"slices"

	"github.com/roost-batch/roost/negotiator/forecast"
)

// For a gang whose units ask for different things the earliest time is looked for part by part: each finds the earliest at which it fits beside those before
// it, and where that is later than theirs all begin again from there. So what is found is a time at which all fit, though not always the first: another
// choice of machines for the earlier parts may have left room before that.

// maxRestarts bounds how often they begin again.
const maxRestarts = 32

// reserve is room for units of a part, and what they take of it.
type reserve struct {
	portion
	hold forecast.Hold
}

// holdForCast is holdFor for a gang whose units ask for different things.
func (p *plan) holdForCast(w *want) bool {
	for i := range w.cast {
		if c := w.cast[i].want; c.reach == nil {
			c.reach = p.reach(c)
		}
	}
	var best []reserve
	var start forecast.Seconds
	for _, w.fence = range p.fences(w) {
		if found, t := p.earliestCast(w); found != nil && (best == nil || t < start) {
			best, start = found, t
		}
	}
	if best != nil {
		w.fence = nil
		p.holdAll(w, best, max(start, p.now+1))
		return true
	}
	held := false
	if p.impatient(w) {
		for _, w.fence = range p.fences(w) {
			if held = p.holdNearest(w); held {
				break
			}
		}
	}
	w.fence = nil
	return held
}

// earliestCast is room for all of a gang, and when; none if no time is known at which it fits.
func (p *plan) earliestCast(w *want) (found []reserve, t forecast.Seconds) {
	t = p.now
	for range maxRestarts {
		found, later, ok := p.allFrom(w, t)
		if !ok || later == t {
			return found, t
		}
		t = later
	}
	return nil, 0
}

// allFrom looks for room for all of a gang from t on. It says where, or until when the first part has to wait that has none yet.
func (p *plan) allFrom(w *want, t forecast.Seconds) (found []reserve, later forecast.Seconds, ok bool) {
	for _, c := range w.cast {
		r := weight(c.Class.sums, c.Class.App, 1)
		var machines []*forecast.Machine
		among := w.fence.within(c.reach)
		for _, at := range among {
			view := *p.view(c.want, at)
			view.Holds = slices.Clone(view.Holds)
			used := false
			for _, one := range found {
				if one.at == at {
					view.Holds, used = append(view.Holds, one.hold), true
				}
			}
			if used && c.Class.Apart {
				view.Holds = append(view.Holds, forecast.Hold{From: 0, Until: forecast.Never, Resources: everything})
			}
			machines = append(machines, &view)
		}
		start, on, fits := forecast.EarliestSpread(machines, t, c.length(), r, c.units, c.here(c.units))
		if !fits || start > t {
			return nil, start, fits
		}
		for i, n := range on {
			if n > 0 {
				found = append(found, reserve{portion{among[i], n}, p.holdOf(c.want, among[i], n, t, forecast.End(t, c.length()))})
			}
		}
	}
	return found, t, true
}

// holdAll holds what was found.
func (p *plan) holdAll(w *want, found []reserve, start forecast.Seconds) {
	var on []portion
	for _, one := range found {
		one.hold.From = start
		p.keep(one.at, one.hold, hold{head: w})
		on = append(on, one.portion)
	}
	if w.on == nil {
		w.on, w.start, w.certainty = on, start, ByWalltime
		if predicted, _ := p.trust(on, start); predicted {
			w.certainty = ByPrediction
		}
	}
}

// holdNearest holds for each part what falls free of the machines that have most of what it needs, or nothing at all.
func (p *plan) holdNearest(w *want) bool {
	var on []portion
	for _, c := range w.cast {
		r := weight(c.Class.sums, c.Class.App, 1)
		some := p.nearest(c.want, c.units, r)
		for _, one := range some {
			p.keep(one.at, p.holdOf(c.want, one.at, one.units, p.now, forecast.Never), hold{head: w})
		}
		if on = append(on, some...); some == nil {
			for _, one := range on {
				f := p.futures[one.at]
				f.Holds, f.holds = f.Holds[:len(f.Holds)-1], f.holds[:len(f.holds)-1]
				p.changed(one.at)
			}
			return false
		}
	}
	if w.on == nil {
		w.on = on
	}
	return true
}
