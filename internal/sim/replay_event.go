package sim

// eventKind is the kind of an event. Events at the same instant come in the order of
// their kinds, and within a kind in the order in which they were planned, as in the
// published schedules.
type eventKind uint8

const (
	predictionExceeded eventKind = iota // a task exceeds its estimate
	jobSubmission
	taskEnd
	taskStart
)

type replayEvent struct {
	at    int64
	order int64 // the kind in the highest bits; below it a counter of planned events
	task  *replayTask
}

// kindBits is the lowest bit of the kind: a replay never plans 2^60 events.
const kindBits = 60

func (e *replayEvent) kind() eventKind { return eventKind(e.order >> kindBits) }

func (e *replayEvent) before(o *replayEvent) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// endHeap is a heap of the future events of running tasks.
type endHeap struct {
	events  []replayEvent
	planned int64
}

func (a *endHeap) push(at int64, k eventKind, t *replayTask) {
	a.planned++
	a.events = append(a.events, replayEvent{at, int64(k)<<kindBits | a.planned, t})
	for i := len(a.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.events[i].before(&a.events[parent]) {
			return
		}
		a.events[i], a.events[parent] = a.events[parent], a.events[i]
		i = parent
	}
}

// pop removes the first event and returns it.
func (a *endHeap) pop() replayEvent {
	first, last := a.events[0], len(a.events)-1
	sinking := a.events[last]
	a.events[last].task = nil
	a.events = a.events[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && a.events[right].before(&a.events[child]) {
			child = right
		}
		if !a.events[child].before(&sinking) {
			break
		}
		a.events[i] = a.events[child]
		i = child
	}
	a.events[i] = sinking
	return first
}

// nextEvent removes the next event and returns it. Only the events of running tasks need
// a heap: submissions are known and in order, and a start happens at the instant of its
// decision.
func (r *logReplay) nextEvent() (e replayEvent, ok bool) {
	if r.submitted < len(r.jobs) {
		e, ok = replayEvent{at: r.jobs[r.submitted].Submit, order: int64(jobSubmission) << kindBits}, true
	}
	if len(r.ends.events) > 0 && (!ok || r.ends.events[0].before(&e)) {
		e, ok = r.ends.events[0], true
	}
	if r.announced < len(r.starting) {
		if s := (replayEvent{at: r.now, order: int64(taskStart) << kindBits, task: r.starting[r.announced]}); !ok ||
			s.before(&e) {
			if r.announced++; r.announced == len(r.starting) {
				r.starting, r.announced = r.starting[:0], 0
			}
			return s, true
		}
	}
	switch {
	case !ok:
	case e.task != nil:
		r.ends.pop()
	default:
		e.task = r.submitNext()
	}
	return e, ok
}
