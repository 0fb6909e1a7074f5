package match

import "github.com/roost-batch/roost/gpu"

// OnlinePlacement is a plan into which units come one by one, in an order that is not the
// plan's own, and stay: whatever fair share, bands and priorities would say. Where each
// goes is decided as in any plan. Who measures how well machines are filled lets tasks
// come so (Weng et al., ATC 2023, §6). It displaces nobody.
//
// While it lasts, its [Matcher] makes no other plan.
type OnlinePlacement struct {
	cycle *negotiationCycle
	of    map[*Request]*requestState
}

// NewOnlinePlacement looks at a snapshot before anything is placed. How many units of a
// request come it does not have to say; but what its requests want is what the mix of GPU
// requests is taken to be, and of a request that wants nothing none can come.
func (t *Matcher) NewOnlinePlacement(s *Snapshot) *OnlinePlacement {
	a := &OnlinePlacement{cycle: t.beginCycle(s), of: make(map[*Request]*requestState, len(s.Requests))}
	for _, w := range a.cycle.requests {
		a.of[w.Request] = w
	}
	return a
}

// Place places one unit of a request of the snapshot, if there is room: on which machine,
// and where on it, as far as the machine tells of its units. The placement holds until
// the next unit comes.
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
	p.result.Grants = p.result.Grants[:0] // nobody asks for them
	if p.unitsFreeAt(at) != nil {
		on = p.lastPlacement
	}
	return p.Machines[at], on, true
}
