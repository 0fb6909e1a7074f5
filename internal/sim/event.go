package sim

// kind is a kind of event. Of events at the same instant the lower kinds come first, and of one kind those that were planned first: so the published
// schedules do.
type kind uint8

const (
	outlived kind = iota // a task runs for longer than it was expected to
	submission
	end
	start
)

type event struct {
	at    int64
	order int64 // the kind in its highest bits, and below how many had been planned
	task  *task
}

// kindBits is where the kind begins: nobody plans 2^60 events.
const kindBits = 60

func (e *event) kind() kind { return kind(e.order >> kindBits) }

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda is what running tasks will come to, a heap.
type agenda struct {
	list    []event
	planned int64
}

func (a *agenda) plan(at int64, k kind, t *task) {
	a.planned++
	a.list = append(a.list, event{at, int64(k)<<kindBits | a.planned, t})
	for i := len(a.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.list[i].before(&a.list[parent]) {
			return
		}
		a.list[i], a.list[parent] = a.list[parent], a.list[i]
		i = parent
	}
}

// pop takes the first event out.
func (a *agenda) pop() event {
	first, last := a.list[0], len(a.list)-1
	sinking := a.list[last]
	a.list[last].task = nil
	a.list = a.list[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && a.list[right].before(&a.list[child]) {
			child = right
		}
		if !a.list[child].before(&sinking) {
			break
		}
		a.list[i] = a.list[child]
		i = child
	}
	a.list[i] = sinking
	return first
}

// next is the next event. Submissions are known from the beginning, in their order, and what starts does so at the instant at which that is decided: so only what
// running tasks come to needs a heap.
func (r *replay) next() (e event, ok bool) {
	if r.submitted < len(r.jobs) {
		e, ok = event{at: r.jobs[r.submitted].Submit, order: int64(submission) << kindBits}, true
	}
	if len(r.agenda.list) > 0 && (!ok || r.agenda.list[0].before(&e)) {
		e, ok = r.agenda.list[0], true
	}
	if r.told < len(r.starting) {
		if s := (event{at: r.now, order: int64(start) << kindBits, task: r.starting[r.told]}); !ok || s.before(&e) {
			if r.told++; r.told == len(r.starting) {
				r.starting, r.told = r.starting[:0], 0
			}
			return s, true
		}
	}
	switch {
	case !ok:
	case e.task != nil:
		r.agenda.pop()
	default:
		e.task = r.submit()
	}
	return e, ok
}
