package match

import "github.com/roost-batch/roost/gpu"

// OnlinePlacement is a plan into which units come one by one and stay. Their order is
// that of the caller, not that of fair share, bands and priorities. Each unit is placed
// as in any other plan. Measurements of how well machines are filled use it (Weng et al.,
// ATC 2023, §6). It preempts nothing.
//
// While it is in use, its [Matcher] must make no other plan.
type OnlinePlacement struct {
	cycle *negotiationCycle
	of    map[*Request]*requestState
}

// NewOnlinePlacement prepares a snapshot for units that come one by one. The snapshot
// need not say how many units of a request come. But the mix of GPU requests is computed
// from what its requests want, and a request that wants 0 units gets none.
func (t *Matcher) NewOnlinePlacement(s *Snapshot) *OnlinePlacement {
	a := &OnlinePlacement{cycle: t.beginCycle(s), of: make(map[*Request]*requestState, len(s.Requests))}
	for _, w := range a.cycle.requests {
		a.of[w.Request] = w
	}
	return a
}

// Place places one unit of a request of the snapshot, if there is room. It returns the
// machine, and the placement there if the machine describes its units. The placement is
// valid until the next call.
func (a *OnlinePlacement) Place(r *Request) (m *Machine, on gpu.Placement, ok bool) {
	p, w := a.cycle, a.of[r]
	if w == nil {
		return nil, on, false
	}
	w.unitsLeft = 1
	at, ok := p.bestMachine(w)
	if !ok || p.placeOnMachine(w, at, 1) != 1 {
		return nil, on, false
	}
	p.result.Grants = p.result.Grants[:0] // not needed
	if p.unitsFreeAt(at) != nil {
		on = p.lastPlacement
	}
	return p.Machines[at], on, true
}
