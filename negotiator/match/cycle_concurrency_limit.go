package match

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// ConcurrencyLimit is how many there are of something that requests take one or more of
// for each unit, beside the resources of a machine: licences (HTCondor's concurrency
// limits), or how many claims a user or a queue may have (PBS's run limits). Whoever
// makes the snapshot counts what is in use, grants on their way included.
type ConcurrencyLimit struct {
	Total int
	Used  int    // more than Total where it was lowered lately
	Label string // how people call it; "limit NAME" where that is empty
	Bytes bool   // it is an amount of bytes
	Cores bool   // it is an amount of thousandths of cores
}

// LimitRequest is so much of a limit, by its name in [Snapshot.Limits], that each unit of
// a request takes: 1 or more.
type LimitRequest struct {
	Limit   string
	Count   int
	PerGang bool // all units of a gang take it together, as they are one job
}

// limitUse is what a want takes of a limit for each unit.
type limitUse struct {
	*ConcurrencyLimit // as yet in this plan
	count             int
	perGang           bool // a gang takes it once
	past              bool // it is counted, and keeps nothing back
}

// countForUnits is what n units of a want take that are placed together.
func (t limitUse) countForUnits(n int) int {
	if t.perGang {
		n = min(n, 1)
	}
	return n * t.count
}

// bindLimits finds the limits of a want. Requests that name the same limit share it.
func (p *negotiationCycle) bindLimits(w *requestState) {
	for _, l := range w.Class.Limits {
		w.limits = p.bindLimit(w, w.limits, LimitRequest{Limit: l.Name, Count: l.Count})
	}
	licences := len(w.limits)
	for _, t := range w.RunLimits {
		w.limits = p.bindLimit(w, w.limits, t)
	}
	for _, t := range w.SoftLimits {
		w.softLimits = p.bindLimit(w, w.softLimits, t)
	}
	if w.Now {
		for _, limits := range [...][]limitUse{w.limits[licences:], w.softLimits} {
			for i := range limits {
				limits[i].past = true
			}
		}
	}
}

// bindLimit adds what a want takes of a limit to a list.
func (p *negotiationCycle) bindLimit(w *requestState, to []limitUse, t LimitRequest) []limitUse {
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
			p.limits = map[string]*ConcurrencyLimit{}
		}
		l = &given
		p.limits[t.Limit] = l
	}
	return append(to, limitUse{ConcurrencyLimit: l, count: t.Count, perGang: t.PerGang && w.gangRequest().Gang > 1})
}

// unitsWithinLimits is how many of n units of a want may start as far as limits, ceilings
// and quotas go, wherever there is room. If it is none the want has to wait, and w.held
// says for what.
func (p *negotiationCycle) unitsWithinLimits(w *requestState, n int) int {
	if w.unusableReservation != "" {
		w.waitReason, w.waitReasonKind = w.unusableReservation, Reserved
		return 0
	}
	for _, t := range w.limits {
		if n = t.unitsWithin(n); n == 0 {
			if w.Explain {
				w.waitReason, w.waitReasonKind = t.reachedText(), OverLimit
			}
			return 0
		}
	}
	if n = p.withinSoftLimits(w, n); n == 0 {
		return 0
	}
	return p.fairShares().unitsWithinShare(w, n)
}

// unitsWithin is how many of n units, of a gang all or none, the limit has room for.
func (t limitUse) unitsWithin(n int) int {
	switch may := max(0, t.Total-t.Used) / t.count; {
	case t.past:
		return n
	case !t.perGang:
		return min(n, may)
	case may == 0:
		return 0
	}
	return n
}

// withinSoftLimits is how many of n units soft limits leave room for, unless it is the
// turn of those that go beyond.
func (p *negotiationCycle) withinSoftLimits(w *requestState, n int) int {
	may := n
	for _, t := range w.softLimits {
		if !p.overSoftLimits {
			may = t.unitsWithin(may)
		}
	}
	p.softLimited = p.softLimited || may == 0 || w.Gang > 1 && may < n
	return may
}

// countPlaced notes that n units of a want were placed. What a gang takes once is noted
// when all of it has a place.
func (p *negotiationCycle) countPlaced(w *requestState, n int) {
	w.submitter.addUsage(w.unitWeight * float64(n))
	for _, limits := range [...][]limitUse{w.limits, w.softLimits} {
		for _, t := range limits {
			if !t.perGang {
				t.Used += n * t.count
			}
		}
	}
}

// countGangLimits notes what a gang takes as a whole.
func (w *requestState) countGangLimits() {
	for _, c := range w.parts {
		for _, limits := range [...][]limitUse{c.limits, c.softLimits} {
			for _, t := range limits {
				if t.perGang {
					t.Used += t.count
				}
			}
		}
	}
}

// reachedText says why no unit can take any more.
func (t limitUse) reachedText() string {
	switch {
	case t.count > t.Total:
		return fmt.Sprintf("%s: it takes %s, and there are %s in all", t.Label, t.amountText(t.count),
			t.amountText(t.Total))
	case t.count > 1 && t.Used < t.Total:
		return fmt.Sprintf("%s: it takes %s, and %s of %s are in use", t.Label, t.amountText(t.count),
			t.amountText(t.Used), t.amountText(t.Total))
	}
	return fmt.Sprintf("%s: %s of %s in use", t.Label, t.amountText(t.Used), t.amountText(t.Total))
}

func (t limitUse) amountText(n int) string {
	switch {
	case t.Bytes:
		return roost.Bytes(n).String()
	case t.Cores:
		return roost.MilliCPU(n).String()
	}
	return fmt.Sprint(n)
}
