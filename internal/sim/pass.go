package sim

import (
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// pass starts what can start now. Of what waited through the last pass nothing can as long as nothing has fallen free and nobody has outlived what was
// expected of him: time alone makes no room, and what is held comes nearer.
func (r *replay) pass() {
	free := r.free()
	from := 0
	if !r.stirred && free <= r.left {
		from = len(r.queue) - 1
	}
	r.left, r.stirred = free, false
	if !r.ask(free, from) {
		return
	}
	r.stand(free)
	for _, g := range r.matcher.Plan(&r.snapshot).Grants {
		r.begin(g.Request)
	}
}

// free is how many processors are: those of jobs that are taken to have ended by now are, even where the end is told of only a moment later.
func (r *replay) free() int64 {
	free := r.Processors - r.used
	for _, t := range r.running {
		if t.over() > r.now {
			break
		}
		free += t.Procs
	}
	return free
}

// stand makes the machine's newest version.
func (r *replay) stand(free int64) {
	claims := r.claims[:0]
	for i, t := range r.running {
		if t.over() > r.now {
			claims = append(claims, match.Claim{ID: uint64(i + 1), Submitter: owner, Band: roost.Batch, Resources: t.request.Class.Resources, Since: epoch + t.Start, Ends: epoch + t.over()})
		}
	}
	r.claims = claims
	r.snapshot.Machines[0] = r.snapshot.Machines[0].With(roost.Resources{CPU: 1000 * roost.MilliCPU(free)}, claims)
	r.snapshot.Now = time.Unix(epoch+r.now, 0)
}

// ask puts the requests of a pass into the snapshot: the front of the queue up to the head, which is the first that there are too few processors for and
// for which room is held, and of the others, from a place in the queue on, those that there are enough left for. It reports whether there is any that could
// start.
func (r *replay) ask(free int64, from int) (any bool) {
	r.snapshot.Requests = r.snapshot.Requests[:0]
	head := 0
	for ; head < len(r.queue); head++ {
		t := r.queue[head]
		r.want(t, math.MaxInt32)
		if free -= t.Procs; free < 0 {
			free += t.Procs
			break
		}
		any = true
	}
	if r.Order == FCFS || free == 0 {
		return any
	}
	for _, t := range r.queue[min(max(head+1, from), len(r.queue)):] {
		if t.Procs <= free {
			any = true
			if r.Order == SJBF {
				r.want(t, int32(-min(t.guess, math.MaxInt32)))
			} else {
				r.want(t, 0)
			}
		}
	}
	return any
}

// want puts the request of a task into the snapshot.
func (r *replay) want(t *task, priority int32) {
	t.request.Walltime, t.request.Priority = time.Duration(t.guess)*time.Second, priority
	r.snapshot.Requests = append(r.snapshot.Requests, &t.request)
}

// begin starts a task.
func (r *replay) begin(q *match.Request) {
	i := slices.IndexFunc(r.queue, func(t *task) bool { return &t.request == q })
	t := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	t.Start, t.Early = r.now, q.Priority != math.MaxInt32
	r.insert(t)
	r.left -= t.Procs
	r.plan(event{at: r.now, kind: start, task: t})
}
