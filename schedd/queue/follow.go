package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// What becomes of one job has consequences for those that stand to it: they are unblocked, or dropped. Those are decided here (Consequences) as if
// somebody asked for them, so that the log tells them. That of rivals only one runs cannot wait for a decision: it is folded in with the very event
// by which one of them starts.

// related makes known that a job stands to another one, so that it is looked at when something happens to that.
func (q *Queue) related(j *job, other uint64) {
	if other == 0 {
		return
	}
	if q.dependents[other] == nil {
		q.dependents[other] = map[uint64]bool{}
	}
	q.dependents[other][j.seq] = true
	q.ripe[j.seq] = true
}

// unrelated forgets that a job stands to another one, unless it still does in another way.
func (q *Queue) unrelated(j *job, other uint64) {
	if slices.Contains(j.rivals, other) || slices.ContainsFunc(j.waits, func(w Wait) bool { return w.Job == other }) {
		return
	}
	delete(q.dependents[other], j.seq)
	if len(q.dependents[other]) == 0 {
		delete(q.dependents, other)
	}
}

// depend takes in what a new job says of others, as far as it is a matter of its own.
func (q *Queue) depend(j *job) {
	for _, w := range j.sub.Waits {
		switch {
		case w.Type == Ons:
			j.on += w.Count
		case w.Type == SyncCount:
			j.sync += w.Count
		case w.Type.holds():
			j.waits = append(j.waits, w)
			q.related(j, w.Job)
			if w.Count != 0 {
				q.counted[w.Job] = true
			}
		}
	}
}

// register takes in what a new job says of others, as far as it changes them. It is for a job that is submitted, and not for one that is restored: the
// others have been told, then.
func (q *Queue) register(j *job) {
	counted := map[uint64]bool{}
	for _, w := range j.sub.Waits {
		other := q.jobs[w.Job]
		if other == nil || other.final() {
			continue
		}
		switch mirror := w.Type.mirror(); {
		case mirror != 0:
			if !counted[w.Job] {
				counted[w.Job] = true
				other.on = max(other.on-1, 0)
			}
			other.waits = append(slices.Clone(other.waits), Wait{mirror, j.seq, 0})
			q.related(other, j.seq)
		case w.Type == SyncWith:
			other.sync = max(other.sync-1, 0)
			q.ripen(other)
		case w.Type == RunOne:
			q.rival(j, other)
		default:
			continue
		}
		q.loosen(other)
		q.note(other)
	}
	q.loosen(j)
}

// withdraw takes back all that a job said of others, and they of it (OpenPBS, alter_unreg).
func (q *Queue) withdraw(j *job) {
	for _, w := range j.sub.Waits {
		if other, mirror := q.jobs[w.Job], w.Type.mirror(); other != nil && mirror != 0 && !other.final() {
			other.waits = slices.DeleteFunc(slices.Clone(other.waits), func(o Wait) bool { return o == Wait{mirror, j.seq, 0} })
			q.unrelated(other, j.seq)
			q.ripe[other.seq] = true
			q.loosen(other)
			q.note(other)
		}
	}
	q.quit(j)
	q.unwait(j)
	j.waits, j.on, j.sync, j.stopped = nil, 0, 0, false
}

// quit makes a job nobody's rival any more.
func (q *Queue) quit(j *job) {
	rivals := j.rivals
	j.rivals, j.stopped = nil, false
	for _, seq := range rivals {
		q.unrelated(j, seq)
		if o := q.jobs[seq]; o != nil {
			o.rivals = slices.DeleteFunc(slices.Clone(o.rivals), func(s uint64) bool { return s == j.seq })
			q.unrelated(o, j.seq)
			q.restrain(o)
			q.note(o)
		}
	}
}

// rival makes a new job one of those of which only one is run: each of them knows all others.
func (q *Queue) rival(j, other *job) {
	for _, seq := range append([]uint64{other.seq}, other.rivals...) {
		o := q.jobs[seq]
		if o == nil || o == j || slices.Contains(j.rivals, seq) {
			continue
		}
		for _, known := range j.rivals {
			q.oppose(q.jobs[known], o)
		}
		q.oppose(j, o)
	}
	for _, seq := range append([]uint64{j.seq}, j.rivals...) {
		q.restrain(q.jobs[seq])
		q.note(q.jobs[seq])
	}
}

func (q *Queue) oppose(a, b *job) {
	if !slices.Contains(a.rivals, b.seq) {
		a.rivals, b.rivals = append(a.rivals, b.seq), append(b.rivals, a.seq)
		q.related(a, b.seq)
		q.related(b, a.seq)
	}
}

// begun reports whether a task of the job has an attempt, or has ended by itself.
func (j *job) begun() bool { return j.active > 0 || j.counts[roost.Completed] > 0 }

// restrain has a job wait, or not any more, as a rival of it has begun.
func (q *Queue) restrain(j *job) {
	stopped := slices.ContainsFunc(j.rivals, func(seq uint64) bool { o := q.jobs[seq]; return o != nil && o.begun() })
	if stopped != j.stopped {
		j.stopped = stopped
		q.loosen(j)
		q.note(j)
	}
}

// contend is for when a job with rivals may have begun, or be as if it had not. One that ends without that is nobody's rival any more.
func (q *Queue) contend(j *job) {
	if len(j.rivals) == 0 {
		return
	}
	rivals := j.rivals
	if j.final() && !j.ran() {
		q.quit(j)
	}
	for _, seq := range rivals {
		if o := q.jobs[seq]; o != nil {
			q.restrain(o)
			q.ripe[seq] = true
		}
	}
	q.restrain(j) // it may be back among those that have not ended
}

// ran reports whether the processes of a task of the job were started, whatever came of it.
func (j *job) ran() bool { return j.began != 0 || j.counts[roost.Completed] > 0 }

// loosen brings the tasks of a job to where they stand by what it waits for.
func (q *Queue) loosen(j *job) {
	from, to := roost.Idle, roost.Blocked
	if !j.blocked() {
		from, to = to, from
	}
	if j.counts[from] == 0 {
		return
	}
	q.together(j, func() {
		for i := range j.state {
			if j.state[i] == from {
				q.transition(j, i, to)
			}
		}
	})
}

// Consequences decides what follows for jobs that wait for others or for their time: they are unblocked, or dropped when what they wait for
// cannot come any more. Asking twice is harmless.
func (q *Queue) Consequences(now time.Time) (events []Event) {
	for seq := range q.timed {
		if now.Unix() >= q.jobs[seq].plan.startAfter {
			q.ripe[seq] = true
		}
	}
	for _, seq := range drain(&q.ripe) {
		if j := q.jobs[seq]; j != nil && !j.final() {
			events = append(events, q.consequence(now, j)...)
		}
	}
	return events
}

func (q *Queue) consequence(now time.Time, j *job) []Event {
	drop := func(text string, other uint64) []Event {
		return []Event{{What: Dropped, Time: now.UnixNano(), Job: j.seq, Reason: q.dropReason(j, text, other)}}
	}
	for _, seq := range j.rivals {
		if o := q.jobs[seq]; o == nil || o.final() && o.ran() { // who did not run is no rival any more
			return drop("only one of it and job %d was to run, and that has ended", seq)
		}
	}
	open := 0
	for _, w := range j.waits {
		// A job that has left the queue was final when it did, and its dependants were ripe before that.
		met, dead, err := q.resolve(w, Limits{})
		switch {
		case dead || err != nil || met && q.stillborn(j, w):
			return drop("it was to run "+w.Type.String()+" job %d, and that has ended otherwise", w.Job)
		case !met:
			open++
		}
	}
	if open == 0 && j.on == 0 && j.sync == 0 && now.Unix() >= j.plan.startAfter && (len(j.waits) > 0 || !j.due) {
		return []Event{{What: Unblocked, Time: now.UnixNano(), Job: j.seq}}
	}
	return nil
}

// stillborn reports whether a job of qsub waits for the end, or the failure, of one that was removed while it was held or waited for others itself:
// that takes all with it that wait for it, however they do (OpenPBS, depend_on_term). Other jobs run when such a one is gone.
func (q *Queue) stillborn(j *job, w Wait) bool {
	other := q.jobs[w.Job]
	return j.plan.pbs && other != nil && other.barren && !other.ran() && w.Count == 0 && (w.Type == AfterAny || w.Type == AfterNotOK)
}

// dropReason says why a job is dropped. Clients of PBS look for its sentence.
func (q *Queue) dropReason(j *job, text string, other uint64) string {
	if j.plan.pbs {
		return fmt.Sprintf("Job deleted as result of dependency on job %v", roost.JobID{Seq: other, Host: q.host})
	}
	return fmt.Sprintf(text, other)
}

// waitsFor says what a blocked job waits for.
func (j *job) waitsFor() string {
	switch {
	case len(j.waits) > 1:
		return fmt.Sprintf("waits: %v job %d, and %d more", j.waits[0].Type, j.waits[0].Job, len(j.waits)-1)
	case len(j.waits) == 1:
		return fmt.Sprintf("waits: %v job %d", j.waits[0].Type, j.waits[0].Job)
	case j.on > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to come before it", j.on)
	case j.sync > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to start with it", j.sync)
	case j.stopped:
		return fmt.Sprintf("waits: only one of it and job %d is to run", j.rivals[0])
	}
	return "waits for its start time"
}

// Depends tells what a job still says of others, and others of it, as PBS writes it: "afterok:12.host", "on:2", "beforeok:14.host".
func (q *Queue) Depends(seq uint64) (list []string) {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	if j.on > 0 {
		list = append(list, Wait{Type: Ons, Count: j.on}.text(q.host))
	}
	if j.sync > 0 {
		list = append(list, Wait{Type: SyncCount, Count: j.sync}.text(q.host))
	}
	for _, w := range j.waits {
		list = append(list, w.text(q.host))
	}
	for _, other := range slices.Sorted(slices.Values(j.rivals)) {
		list = append(list, Wait{Type: RunOne, Job: other}.text(q.host))
	}
	for _, other := range slices.Sorted(maps.Keys(q.dependents[seq])) {
		if o := q.jobs[other]; o != nil {
			for _, w := range o.waits {
				if mirror := w.Type.mirrored(); w.Job == seq && mirror != 0 {
					list = append(list, Wait{mirror, other, 0}.text(q.host))
				}
			}
		}
	}
	return list
}
