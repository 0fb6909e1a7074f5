package match

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// ConcurrencyLimit is a number of things that units take beside a machine's resources. It
// may count licenses (HTCondor's concurrency limits) or claims of a user or a queue
// (PBS's run limits). The maker of the snapshot counts what is in use, pending grants
// included.
type ConcurrencyLimit struct {
	Total int
	Used  int    // may exceed Total where the limit was lowered recently
	Label string // name in messages; empty: "limit NAME"
	Bytes bool   // the limit counts bytes
	Cores bool   // the limit counts thousandths of cores
}

// LimitRequest is how much of a limit each unit of a request takes, at least 1. The limit
// is named as in [Snapshot.Limits].
type LimitRequest struct {
	Limit   string
	Count   int
	PerGang bool // all units of a gang take it once, as they are one job
}

// limitUse is what each unit of a request takes of a limit.
type limitUse struct {
	*ConcurrencyLimit // its use at this point of the cycle
	count             int
	perGang           bool // a gang takes it once
	past              bool // the use is counted, but the limit does not stop the request
}

// countForUnits returns what n units of a request take if they are placed together.
func (t limitUse) countForUnits(n int) int {
	if t.perGang {
		n = min(n, 1)
	}
	return n * t.count
}

// bindLimits finds the limits of a request. Requests that name the same limit share it.
func (p *negotiationCycle) bindLimits(w *requestState) {
	for _, l := range w.Class.Limits {
		w.limits = p.bindLimit(w, w.limits, LimitRequest{Limit: l.Name, Count: l.Count})
	}
	limits := len(w.limits)
	for _, t := range w.RunLimits {
		w.limits = p.bindLimit(w, w.limits, t)
	}
	for _, t := range w.SoftLimits {
		w.softLimits = p.bindLimit(w, w.softLimits, t)
	}
	if w.Now {
		for _, limits := range [...][]limitUse{w.limits[limits:], w.softLimits} {
			for i := range limits {
				limits[i].past = true
			}
		}
	}
}

// bindLimit appends what a request takes of a limit to a list.
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

// unitsWithinLimits returns how many of n units may start under limits, ceilings and
// quotas, wherever there is room. At 0 the request has to wait, and w.waitReason says for
// what.
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

// unitsWithin returns how many of n units the limit has room for; of a gang, all or none.
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

// withinSoftLimits returns how many of n units soft limits leave room for. They do not
// count while requests beyond their soft limits are placed.
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

// countPlaced counts n placed units of a request against its limits and its submitter.
// What a gang takes once is counted when the whole gang is placed.
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

// countGangLimits counts what a gang takes as a whole.
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

// reachedText says why no more units may start.
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
