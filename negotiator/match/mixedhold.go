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
	t := p.now
	for range maxRestarts {
		found, later, ok := p.allFrom(w, t)
		switch {
		case !ok && p.impatient(w):
			return p.holdNearest(w)
		case !ok:
			return false
		case later == t:
			p.holdAll(w, found, max(t, p.now+1))
			return true
		}
		t = later
	}
	return false
}

// allFrom looks for room for all of a gang from t on. It says where, or until when the first part has to wait that has none yet.
func (p *plan) allFrom(w *want, t forecast.Seconds) (found []reserve, later forecast.Seconds, ok bool) {
	for _, c := range w.cast {
		r := weight(c.Class.sums, c.Class.App, 1)
		var machines []*forecast.Machine
		for _, at := range c.reach {
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
				hold := forecast.Hold{From: t, Until: forecast.End(t, c.length()), Resources: times(weight(c.Class.Resources, c.Class.App, 1), n)}
				found = append(found, reserve{portion{c.reach[i], n}, hold})
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
			h := forecast.Hold{From: p.now, Until: forecast.Never, Resources: times(weight(c.Class.Resources, c.Class.App, 1), one.units)}
			p.keep(one.at, h, hold{head: w})
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
