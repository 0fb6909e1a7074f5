package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// The matcher alone decides which jobs start, but a pass does not repeat questions that
// it has answered: the snapshot leaves out requests that must wait according to the last
// plan, because of the reservation for the head of the queue
// ([match.BackfillReservation]). Time alone frees no room, and the reservation only comes
// nearer.

// backfillBatch is how many backfill candidates one plan gets. Those of them that start
// often leave no room for the rest.
const backfillBatch = 3

// runCycle starts what can start now. If nothing but a submission has happened since the
// last pass, it looks only at the newest job of the queue.
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

// startFitting starts what can start of the front of the queue, and of the queue from an
// index on.
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

// backfillCandidates appends to list the tasks that may start before the head of the
// queue. Enough processors must be free, and the reservation of the head must leave room,
// if one is known.
func (r *logReplay) backfillCandidates(list, of []waitingTask, head uint64, free int64) []waitingTask {
	for _, w := range of {
		if w.procs <= free && w.number > head && (r.headReservation == nil ||
			r.headReservation.LeavesRoom(wallStart+r.now+w.predicted, processorResources(w.procs))) {
			list = append(list, w)
		}
	}
	return list
}

// startPlanned plans for the first tasks of the queue in their order, then for others,
// and starts what is granted.
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

// requestOf returns the request of a task.
func (r *logReplay) requestOf(w waitingTask, priority int32) *match.Request {
	q := &w.task.request
	q.Walltime, q.Priority = time.Duration(w.predicted)*time.Second, priority
	return q
}

// freeProcessors returns the number of free processors. It includes those of jobs whose
// expected end has passed, even if the event of the end is still to come at this instant.
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

// updateMachine puts the machine's newest version into the snapshot.
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

// compareRuntime orders tasks by estimate, then by order of submission.
func compareRuntime(a, b waitingTask) int {
	if a.predicted != b.predicted {
		return cmp.Compare(a.predicted, b.predicted)
	}
	return cmp.Compare(a.number, b.number)
}

// startTask starts the task of a granted request.
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

// minQueueShift is the length up to which startTask moves the queue when its head starts.
// A longer queue is resliced, which costs new memory later.
const minQueueShift = 64
