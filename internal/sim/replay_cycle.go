package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// Who starts is decided by match alone. But it is not asked what it has answered: a pass
// puts those requests into its snapshot of which the last plan has not said already that
// they have to wait. What that is about is the room that it holds for the head of the
// queue ([match.BackfillReservation]). Time alone makes no room, and what is held comes
// nearer.

// backfillBatch is how many it is asked of at a time that may start before the head: what
// of them starts often leaves no room for the others.
const backfillBatch = 3

// runCycle starts what can start now. One that follows a submission is of the last in the
// queue.
func (r *logReplay) runCycle(submitted bool) {
	free := r.freeProcessors()
	if r.unchanged && free == r.freeAfterPass {
		if n := len(r.queue); submitted && r.queue[n-1].procs <= free && (n == 1 || r.Order != FirstComeFirstServed) {
			r.startFitting(free, n-1)
		}
	} else {
		r.startFitting(free, 0)
	}
	r.unchanged = true
}

// startFitting starts what can start now of what stands in the queue from a place on, and
// of those at its front.
func (r *logReplay) startFitting(free int64, from int) {
	r.freeAfterPass = free
	front, rest := 0, free
	for front < len(r.queue) && r.queue[front].procs <= rest {
		rest -= r.queue[front].procs
		front++
	}
	switch {
	case front == len(r.queue) || r.Order == FirstComeFirstServed:
		if front > 0 {
			r.headReservation = nil
			r.startPlanned(front, nil)
		}
		return
	case front > 0:
		r.headReservation = nil
	}
	head := r.queue[front].number
	r.candidates = r.candidates[:0]
	if rest > 0 {
		behind := r.queue[min(max(front+1, from), len(r.queue)):]
		if r.Order == SJBF && len(behind) > 1 {
			behind = r.shortest
		}
		r.candidates = r.backfillCandidates(r.candidates, behind, head, rest)
	}
	for list := r.candidates; front > 0 || len(list) > 0; front = 0 {
		n := min(backfillBatch, len(list))
		r.startPlanned(front+1, list[:n])
		list = r.backfillCandidates(list[:0], list[n:], head, r.freeAfterPass)
	}
}

// backfillCandidates adds to a list who of some behind the head of the queue may start
// before it, as far as is known of what is held for that: those for whom there are enough
// processors.
func (r *logReplay) backfillCandidates(list, of []waitingTask, head uint64, free int64) []waitingTask {
	for _, w := range of {
		if w.procs <= free && w.number > head && (r.headReservation == nil ||
			r.headReservation.LeavesRoom(wallStart+r.now+w.predicted, processorResources(w.procs))) {
			list = append(list, w)
		}
	}
	return list
}

// startPlanned asks who of the first in the queue starts, in their order, and who of
// others, and starts them.
func (r *logReplay) startPlanned(first int, others []waitingTask) {
	requests := r.snapshot.Requests[:0]
	for _, w := range r.queue[:first] {
		requests = append(requests, r.requestOf(w, math.MaxInt32))
	}
	for i, w := range others {
		requests = append(requests, r.requestOf(w, int32(-i)))
	}
	r.snapshot.Requests = requests
	r.updateMachine()
	p := r.matcher.Plan(&r.snapshot)
	if r.headReservation = nil; len(p.BackfillReservations) > 0 {
		r.headReservation = &p.BackfillReservations[0]
	}
	for i := range p.Grants {
		r.startTask(p.Grants[i].Request)
	}
}

// requestOf is the request of a task.
func (r *logReplay) requestOf(w waitingTask, priority int32) *match.Request {
	q := &w.task.request
	q.Walltime, q.Priority = time.Duration(w.predicted)*time.Second, priority
	return q
}

// freeProcessors is how many processors are: those of jobs that are taken to have ended
// by now are, even where the end is told of only a moment later.
func (r *logReplay) freeProcessors() int64 {
	free := r.Processors - r.used
	for i := range r.returns {
		if r.returns[i].At > wallStart+r.now {
			break
		}
		free += r.running[i].procs
	}
	return free
}

// updateMachine makes the machine's newest version.
func (r *logReplay) updateMachine() {
	over := 0
	for over < len(r.returns) && r.returns[over].At <= wallStart+r.now {
		over++
	}
	r.snapshot.Machines[0] = r.snapshot.Machines[0].WithReturning(
		roost.Resources{CPU: 1000 * roost.MilliCPU(r.freeAfterPass)}, r.returns[over:],
	)
	r.snapshot.Now = time.Unix(wallStart+r.now, 0)
}

// appendToQueue puts a task at the end of the queue.
func (r *logReplay) appendToQueue(t *replayTask) {
	w := waitingTask{t.procs, t.predicted, t.number, t}
	r.queue = append(r.queue, w)
	if r.Order == SJBF {
		i, _ := slices.BinarySearchFunc(r.shortest, w, compareRuntime)
		r.shortest = slices.Insert(r.shortest, i, w)
	}
}

// compareRuntime orders by how long tasks are taken to run, then by who was submitted
// first.
func compareRuntime(a, b waitingTask) int {
	if a.predicted != b.predicted {
		return cmp.Compare(a.predicted, b.predicted)
	}
	return cmp.Compare(a.number, b.number)
}

// startTask starts a task.
func (r *logReplay) startTask(q *match.Request) {
	i, _ := slices.BinarySearchFunc(r.queue, q.Key.ID, func(w waitingTask, number uint64) int {
		return cmp.Compare(w.number, number)
	})
	w := r.queue[i]
	if i == 0 && len(r.queue) > minQueueShift {
		r.queue = r.queue[1:]
	} else {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	if r.Order == SJBF {
		i, _ := slices.BinarySearchFunc(r.shortest, w, compareRuntime)
		r.shortest = slices.Delete(r.shortest, i, i+1)
	}
	t := w.task
	t.Start, t.Early = r.now, q.Priority != math.MaxInt32
	r.insertRunning(t)
	r.freeAfterPass -= t.procs
	r.starting = append(r.starting, t)
}

// minQueueShift is a queue that is rather moved than let grow into new memory.
const minQueueShift = 64
