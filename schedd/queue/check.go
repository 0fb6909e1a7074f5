package queue

import "github.com/roost-batch/roost"

// Check panics when the state contradicts itself. It looks at everything: it is for tests and simulations.
func (q *Queue) Check() {
	tasks, active := 0, 0
	ready := map[*Request]int{}
	members := map[*Request]int{}
	for seq, j := range q.jobs {
		if j.seq != seq || seq > q.lastSeq {
			illegal("job %d stands as %d, and the last is %d", j.seq, seq, q.lastSeq)
		}
		j.check()
		active += j.active
		tasks += len(j.state) - j.counts[roost.Completed] - j.counts[roost.Removed]
		for _, c := range j.classes {
			ready[c.request] += c.counted
			members[c.request]++
			if (c.counted > 0) != (c.place >= 0) || c.place >= 0 && c.request.waiting[c.place] != c {
				illegal("a class of job %d adds %d and has place %d", seq, c.counted, c.place)
			}
		}
		for _, w := range j.waits {
			if _, ok := q.dependents[w.Job][seq]; !ok {
				illegal("job %d waits for %d, which does not know", seq, w.Job)
			}
		}
	}
	if tasks != q.tasks || active != q.active {
		illegal("%d tasks are not final and %d active; counted are %d and %d", tasks, active, q.tasks, q.active)
	}
	for id, r := range q.requests {
		if r.ID != id || r.Ready != ready[r] || r.members != members[r] || members[r] == 0 {
			illegal("request %d: ready %d, counted %d; members %d, counted %d", id, r.Ready, ready[r], r.members, members[r])
		}
	}
}

// check holds one job's tasks against its counts: at most one live attempt a task, and none beside a state that has none (P3, P4).
func (j *job) check() {
	var counts [roost.Removed + 1]int
	failed, active := 0, 0
	for i, s := range j.state {
		counts[s]++
		r := j.records[i]
		if s.Active() != (r != nil && r.live) {
			illegal("task %d[%d] is %v; its record: %+v", j.seq, i, s, r)
		}
		if s.Active() {
			active++
		}
		if s == roost.Completed && !r.exit.Success() {
			failed++
		}
		if s == roost.Blocked && !j.blocked() || s == roost.Idle && j.blocked() {
			illegal("task %d[%d] is %v; the job waits for %v (due: %v)", j.seq, i, s, j.waits, j.due)
		}
		if j.class(i).ready.has(i) != (s == roost.Idle) {
			illegal("task %d[%d] is %v and stands wrongly among the ready", j.seq, i, s)
		}
	}
	if counts != j.counts || failed != j.failed || active != j.active {
		illegal("job %d: counts %v %d %d, counted %v %d %d", j.seq, j.counts, j.failed, j.active, counts, failed, active)
	}
}
