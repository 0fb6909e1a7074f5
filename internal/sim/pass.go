package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// Who starts is decided by match alone. But it is not asked what it has answered: a pass puts those requests into its snapshot of which the last plan has not said
// already that they have to wait. What that is about is the room that it holds for the head of the queue ([match.Head]). Time alone makes no room, and what is held
// comes nearer.

// few is how many it is asked of at a time that may start before the head: what of them starts often leaves no room for the others.
const few = 3

// pass starts what can start now. One that follows a submission is of the last in the queue.
func (r *replay) pass(submitted bool) {
	free := r.free()
	if r.settled && free == r.left {
		if n := len(r.queue); submitted && r.queue[n-1].procs <= free && (n == 1 || r.Order != FCFS) {
			r.fill(free, n-1)
		}
	} else {
		r.fill(free, 0)
	}
	r.settled = true
}

// fill starts what can start now of what stands in the queue from a place on, and of those at its front.
func (r *replay) fill(free int64, from int) {
	r.left = free
	front, rest := 0, free
	for front < len(r.queue) && r.queue[front].procs <= rest {
		rest -= r.queue[front].procs
		front++
	}
	switch {
	case front == len(r.queue) || r.Order == FCFS:
		if front > 0 {
			r.head = nil
			r.plan(front, nil)
		}
		return
	case front > 0:
		r.head = nil
	}
	head := r.queue[front].number
	r.gap = r.gap[:0]
	if rest > 0 {
		behind := r.queue[min(max(front+1, from), len(r.queue)):]
		if r.Order == SJBF && len(behind) > 1 {
			behind = r.shortest
		}
		r.gap = r.gaps(r.gap, behind, head, rest)
	}
	for list := r.gap; front > 0 || len(list) > 0; front = 0 {
		n := min(few, len(list))
		r.plan(front+1, list[:n])
		list = r.gaps(list[:0], list[n:], head, r.left)
	}
}

// gaps adds to a list who of some behind the head of the queue may start before it, as far as is known of what is held for that: those for whom there are enough
// processors.
func (r *replay) gaps(list, of []waiter, head uint64, free int64) []waiter {
	for _, w := range of {
		if w.procs <= free && w.number > head && (r.head == nil || r.head.Leaves(epoch+r.now+w.guess, sized(w.procs))) {
			list = append(list, w)
		}
	}
	return list
}

// plan asks who of the first in the queue starts, in their order, and who of others, and starts them.
func (r *replay) plan(first int, others []waiter) {
	requests := r.snapshot.Requests[:0]
	for _, w := range r.queue[:first] {
		requests = append(requests, r.want(w, math.MaxInt32))
	}
	for i, w := range others {
		requests = append(requests, r.want(w, int32(-i)))
	}
	r.snapshot.Requests = requests
	r.stand()
	p := r.matcher.Plan(&r.snapshot)
	if r.head = nil; len(p.Heads) > 0 {
		r.head = &p.Heads[0]
	}
	for i := range p.Grants {
		r.begin(p.Grants[i].Request)
	}
}

// want is the request of a task.
func (r *replay) want(w waiter, priority int32) *match.Request {
	q := &w.task.request
	q.Walltime, q.Priority = time.Duration(w.guess)*time.Second, priority
	return q
}

// free is how many processors are: those of jobs that are taken to have ended by now are, even where the end is told of only a moment later.
func (r *replay) free() int64 {
	free := r.Processors - r.used
	for i := range r.returns {
		if r.returns[i].At > epoch+r.now {
			break
		}
		free += r.running[i].procs
	}
	return free
}

// stand makes the machine's newest version.
func (r *replay) stand() {
	over := 0
	for over < len(r.returns) && r.returns[over].At <= epoch+r.now {
		over++
	}
	r.snapshot.Machines[0] = r.snapshot.Machines[0].Returning(roost.Resources{CPU: 1000 * roost.MilliCPU(r.left)}, r.returns[over:])
	r.snapshot.Now = time.Unix(epoch+r.now, 0)
}

// join puts a task at the end of the queue.
func (r *replay) join(t *task) {
	w := waiter{t.procs, t.guess, t.number, t}
	r.queue = append(r.queue, w)
	if r.Order == SJBF {
		i, _ := slices.BinarySearchFunc(r.shortest, w, shorter)
		r.shortest = slices.Insert(r.shortest, i, w)
	}
}

// shorter orders by how long tasks are taken to run, then by who was submitted first.
func shorter(a, b waiter) int {
	if a.guess != b.guess {
		return cmp.Compare(a.guess, b.guess)
	}
	return cmp.Compare(a.number, b.number)
}

// begin starts a task.
func (r *replay) begin(q *match.Request) {
	i, _ := slices.BinarySearchFunc(r.queue, q.Key.ID, func(w waiter, number uint64) int { return cmp.Compare(w.number, number) })
	w := r.queue[i]
	if i == 0 && len(r.queue) > short {
		r.queue = r.queue[1:]
	} else {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	if r.Order == SJBF {
		i, _ := slices.BinarySearchFunc(r.shortest, w, shorter)
		r.shortest = slices.Delete(r.shortest, i, i+1)
	}
	t := w.task
	t.Start, t.Early = r.now, q.Priority != math.MaxInt32
	r.insert(t)
	r.left -= t.procs
	r.starting = append(r.starting, t)
}

// short is a queue that is rather moved than let grow into new memory.
const short = 64
