package match

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Limit is how many there are of something that requests take one or more of for each unit, beside the resources of a machine: licences
// (HTCondor's concurrency limits), or how many claims a user or a queue may have (PBS's run limits). Whoever makes the snapshot counts what is
// in use, grants on their way included.
type Limit struct {
	Total int
	Used  int    // more than Total where it was lowered lately
	Label string // how people call it; "limit NAME" where that is empty
	Bytes bool   // it is an amount of bytes
	Cores bool   // it is an amount of thousandths of cores
}

// Take is so much of a limit, by its name in [Snapshot.Limits], that each unit of a request takes: 1 or more.
type Take struct {
	Limit string
	Count int
	Once  bool // all units of a gang take it together, as they are one job
}

// tap is what a want takes of a limit for each unit.
type tap struct {
	*Limit // as yet in this plan
	count  int
	once   bool // a gang takes it once
	past   bool // it is counted, and keeps nothing back
}

// of is what n units of a want take that are placed together.
func (t tap) of(n int) int {
	if t.once {
		n = min(n, 1)
	}
	return n * t.count
}

// tapLimits finds the limits of a want. Requests that name the same limit share it.
func (p *plan) tapLimits(w *want) {
	for _, l := range w.Class.Limits {
		w.taps = p.tap(w, w.taps, Take{Limit: l.Name, Count: l.Count})
	}
	licences := len(w.taps)
	for _, t := range w.RunLimits {
		w.taps = p.tap(w, w.taps, t)
	}
	for _, t := range w.Soft {
		w.soft = p.tap(w, w.soft, t)
	}
	if w.Now {
		for _, taps := range [...][]tap{w.taps[licences:], w.soft} {
			for i := range taps {
				taps[i].past = true
			}
		}
	}
}

// tap adds what a want takes of a limit to a list.
func (p *plan) tap(w *want, to []tap, t Take) []tap {
	l := p.limits[t.Limit]
	if l == nil {
		given, ok := p.Limits[t.Limit]
		if !ok {
			return to
		}
		if given.Label == "" {
			given.Label = "limit " + t.Limit
		}
		if p.limits == nil {
			p.limits = map[string]*Limit{}
		}
		l = &given
		p.limits[t.Limit] = l
	}
	return append(to, tap{Limit: l, count: t.Count, once: t.Once && w.whole().Gang > 1})
}

// allowed is how many of n units of a want may start as far as limits, ceilings and quotas go, wherever there is room. If it is none the want has to wait, and
// w.held says for what.
func (p *plan) allowed(w *want, n int) int {
	if w.barred != "" {
		w.held, w.heldBy = w.barred, Reserved
		return 0
	}
	for _, t := range w.taps {
		if n = t.some(n); n == 0 {
			if w.Explain {
				w.held, w.heldBy = t.reached(), Rationed
			}
			return 0
		}
	}
	if n = p.modest(w, n); n == 0 {
		return 0
	}
	return p.mayTake(w, n)
}

// some is how many of n units, of a gang all or none, the limit has room for.
func (t tap) some(n int) int {
	switch may := max(0, t.Total-t.Used) / t.count; {
	case t.past:
		return n
	case !t.once:
		return min(n, may)
	case may == 0:
		return 0
	}
	return n
}

// modest is how many of n units soft limits leave room for, unless it is the turn of those that go beyond.
func (p *plan) modest(w *want, n int) int {
	may := n
	for _, t := range w.soft {
		if !p.beyond {
			may = t.some(may)
		}
	}
	p.curbed = p.curbed || may == 0 || w.Gang > 1 && may < n
	return may
}

// use notes that n units of a want were placed. What a gang takes once is noted when all of it has a place.
func (p *plan) use(w *want, n int) {
	w.account.charge(w.unit * float64(n))
	for _, taps := range [...][]tap{w.taps, w.soft} {
		for _, t := range taps {
			if !t.once {
				t.Used += n * t.count
			}
		}
	}
}

// useOnce notes what a gang takes as a whole.
func (w *want) useOnce() {
	for _, c := range w.cast {
		for _, taps := range [...][]tap{c.taps, c.soft} {
			for _, t := range taps {
				if t.once {
					t.Used += t.count
				}
			}
		}
	}
}

// reached says why no unit can take any more.
func (t tap) reached() string {
	switch {
	case t.count > t.Total:
		return fmt.Sprintf("%s: it takes %s, and there are %s in all", t.Label, t.amount(t.count), t.amount(t.Total))
	case t.count > 1 && t.Used < t.Total:
		return fmt.Sprintf("%s: it takes %s, and %s of %s are in use", t.Label, t.amount(t.count), t.amount(t.Used), t.amount(t.Total))
	}
	return fmt.Sprintf("%s: %s of %s in use", t.Label, t.amount(t.Used), t.amount(t.Total))
}

func (t tap) amount(n int) string {
	switch {
	case t.Bytes:
		return roost.Bytes(n).String()
	case t.Cores:
		return roost.MilliCPU(n).String()
	}
	return fmt.Sprint(n)
}
