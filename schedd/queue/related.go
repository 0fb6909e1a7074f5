package queue

import "slices"

// How a job stands to others goes to disk with the job: what it said itself stands in its submission, and the rest here.

// relations adds how the job stands to others, beyond what it said itself when it was submitted.
func (j *job) relations(b []byte) []byte {
	for _, w := range j.waits {
		if !slices.Contains(j.sub.Waits, w) {
			b = message(b, sAdded, w.append)
		}
	}
	b = number(number(b, sOn, uint64(j.on)), sSync, uint64(j.sync))
	for _, other := range j.rivals {
		b = number(b, sRival, other)
	}
	b = truth(truth(b, sStopped, j.stopped), sBarren, j.barren)
	return truth(b, sDue, j.due && j.blocked() && j.plan.startAfter > 0)
}

// relations is how a job stands to others, beyond what it said itself.
type relations struct {
	added           []Wait
	on, sync        int
	rivals          []uint64
	stopped, barren bool
	due             bool
}

func (r *relations) field(f field) error {
	switch f.number {
	case sAdded:
		var w Wait
		err := w.decode(f.bytes)
		r.added = append(r.added, w)
		return err
	case sOn:
		r.on = int(f.value)
	case sSync:
		r.sync = int(f.value)
	case sRival:
		r.rivals = append(r.rivals, f.value)
	case sStopped:
		r.stopped = f.value != 0
	case sBarren:
		r.barren = f.value != 0
	case sDue:
		r.due = f.value != 0
	}
	return nil
}

// relate brings a restored job to how it stood to others.
func (j *job) relate(q *Queue, r *relations, free bool) {
	if !free {
		j.on, j.sync, j.stopped = r.on, r.sync, r.stopped
		j.waits = append(slices.Clip(j.waits), r.added...)
	}
	if r.due {
		j.due = true
		delete(q.timed, j.seq)
	}
	j.rivals, j.barren = r.rivals, r.barren
	for _, w := range r.added {
		q.related(j, w.Job)
	}
	for _, other := range j.rivals {
		q.related(j, other)
	}
}
