package match

import "github.com/roost-batch/roost/gpu"

// Arrivals is a plan into which units come one by one, in an order that is not the plan's own, and stay: whatever fair share, bands and priorities would say.
// Where each goes is decided as in any plan. Who measures how well machines are filled lets tasks come so (Weng et al., ATC 2023, §6). It displaces nobody.
//
// While it lasts, its [Matcher] makes no other plan.
type Arrivals struct {
	plan *plan
	of   map[*Request]*want
}

// Arrivals looks at a snapshot before anything is placed. How many units of a request come it does not have to say; but what its requests want is what
// the mix of GPU requests is taken to be, and of a request that wants nothing none can come.
func (t *Matcher) Arrivals(s *Snapshot) *Arrivals {
	a := &Arrivals{plan: t.start(s), of: make(map[*Request]*want, len(s.Requests))}
	for _, w := range a.plan.wants {
		a.of[w.Request] = w
	}
	return a
}

// Come places one unit of a request of the snapshot, if there is room: on which machine, and where on it, as far as the machine tells of its units. The
// placement holds until the next unit comes.
func (a *Arrivals) Come(r *Request) (m *Machine, on gpu.Placement, ok bool) {
	p, w := a.plan, a.of[r]
	if w == nil {
		return nil, on, false
	}
	w.left = 1
	at, ok := p.best(w)
	if !ok || p.place(w, at, 1) != 1 {
		return nil, on, false
	}
	p.out.Grants = p.out.Grants[:0] // nobody asks for them
	if p.splitAt(at) != nil {
		on = p.spot
	}
	return p.Machines[at], on, true
}
