package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/negotiator/share"
)

// The units of a gang may ask for different things: the parts of a program that has several machines. Then they are of several requests, which one of them
// leads: it waits, takes its turn and is explained for all of them.

// section is so many units of a gang that ask for the same.
type section struct {
	*want
	units int
	lacks int // of those, while room is made for them
	had   int // its left when the gang began
}

// openCast parts a gang.
func (p *plan) openCast(w *want) {
	if len(w.Parts) == 0 {
		w.cast = []section{{want: w, units: w.Gang}}
		return
	}
	own, weight := w.Gang, 0.0
	for _, r := range w.Parts {
		own -= r.Wanted
	}
	w.cast = []section{p.sectionOf(w, w.Request, own)}
	for _, r := range w.Parts {
		w.cast = append(w.cast, p.sectionOf(w, r, r.Wanted))
	}
	for _, c := range w.cast {
		weight += c.unit * float64(c.units)
	}
	w.unit = weight / float64(w.Gang)
}

func (p *plan) sectionOf(w *want, r *Request, units int) section {
	sub := &want{Request: r, left: units, account: w.account, unit: share.Weight(r.Class.Resources, p.total), of: w}
	p.tapLimits(sub)
	sub.reserved = w.reserved
	return section{want: sub, units: units}
}

// whole is the want of the gang that a want is a part of, or itself.
func (w *want) whole() *want {
	if w.of != nil {
		return w.of
	}
	return w
}

// mixed reports whether the units of a gang ask for different things.
func (w *want) mixed() bool { return len(w.Parts) > 0 }

// allowedGang is allowed for a whole gang: Gang, or fewer.
func (p *plan) allowedGang(w *want) int {
	if !w.mixed() || w.barred != "" {
		return p.allowed(w, w.Gang)
	}
	need := map[*Limit]int{}
	for _, c := range w.cast {
		for _, t := range c.taps {
			if need[t.Limit] += t.of(c.units); !t.past && need[t.Limit] > t.Total-t.Used {
				w.held, w.heldBy = t.reached(), Rationed
				return 0
			}
		}
		for _, t := range c.soft {
			if need[t.Limit] += t.of(c.units); !t.past && !p.beyond && need[t.Limit] > t.Total-t.Used {
				p.curbed = true
				return 0
			}
		}
	}
	return p.mayTake(w, w.Gang)
}

// placeCast is placeGang for units that may ask for different things. To find places for those is to pack bins, for which no quick way always finds what
// there is; so the parts are placed in two orders, those that weigh most first (best fit decreasing), and those first that have fewest machines to choose from.
func (p *plan) placeCast(w *want) (room int) {
	if !w.mixed() {
		return p.placeGang(w)
	}
	slices.SortStableFunc(w.cast, func(a, b section) int { return cmp.Compare(b.unit, a.unit) })
	if room = p.placeGang(w); room >= w.Gang {
		return room
	}
	slices.SortStableFunc(w.cast, func(a, b section) int { return cmp.Compare(len(a.heap.list), len(b.heap.list)) })
	return max(room, p.placeGang(w))
}

// dismiss gives back the memory of the parts of a gang that has had its turn.
func (p *plan) dismiss(w *want) {
	for _, c := range w.cast {
		if c.want != w {
			p.release(c.want)
		}
	}
}

// lacking is the want to be explained for one that waits: the part of a gang that found no room.
func (w *want) lacking() *want {
	sub := w.short
	if sub == nil || sub == w {
		return w
	}
	sub.held, sub.heldBy, sub.barren, sub.keptOff, sub.left = w.held, w.heldBy, w.barren, w.keptOff, w.left
	sub.ahead, sub.higher, sub.own, sub.weightAhead = w.ahead, w.higher, w.own, w.weightAhead
	sub.on, sub.start, sub.certainty, sub.barred = w.on, w.start, w.certainty, w.barred
	return sub
}

// never says that a gang whose units want a machine each has fewer that could run one than units, in the words of PBS; "" if it has enough.
func (w *want) never(all, machines int) string {
	if w.Gang < 2 || !w.Class.Apart && !w.Class.Alone {
		return ""
	}
	units := 0
	for _, c := range w.whole().cast {
		if c.want == w || c.of == nil {
			units = c.units
		}
	}
	switch {
	case all < w.Gang:
		return fmt.Sprintf("Can Never Run: %d tasks want a machine each, and there are %d", w.Gang, all)
	case machines >= units:
		return ""
	}
	return fmt.Sprintf("Can Never Run: %s a machine each, and %d could run one", plural(units, "task wants", "tasks want"), machines)
}
