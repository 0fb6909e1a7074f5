package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// The live attempt of a task becomes larger or smaller where it runs: of a service by its
// update, and of an alloc by an alteration.
//
//	ResizeRequested ─▶ its machine is asked, and again on each new session
//	                     ├─▶ Resized:       it has the size, and is of the class that asks for it
//	                     └─▶ ResizeRefused: it stays as it began
//
// The task is of its old class and revision until the machine has answered. So what the
// queue says that it has is never more than it has.

// taskResizes is the queue as attempts become larger or smaller.
type taskResizes struct{ *Queue }

// resizeRetry is after how long a machine is asked again for less memory than a task
// uses. It is asked resizeTries times in all.
const (
	resizeRetry = time.Minute
	resizeTries = 2
)

// roomRetry is after how long the machine of a task whose size follows its use is asked
// again for room that it did not have. The time doubles, and it is asked roomTries times
// in all; then the task moves.
const (
	roomRetry = 15 * time.Second
	roomTries = 4
)

// AttemptResize is the size that a live attempt is to have where it runs.
type AttemptResize struct {
	Attempt   roost.AttemptID
	Resources roost.Resources
	// RequestAd is the ad whose requirements its machine has to satisfy; empty: they have
	// not changed
	RequestAd string
}

// TakeResizes drains the attempts whose machines are to be asked.
func (q *pendingEffects) TakeResizes() []AttemptResize {
	out := q.resizes
	q.resizes = nil
	return out
}

// WantedSize returns the size for which the machine of a live attempt is to be asked. It
// is false if that has answered, or was never to be asked.
func (q attemptDecisions) WantedSize(a roost.AttemptID) (AttemptResize, bool) {
	if !q.IsLive(a) {
		return AttemptResize{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.Own(a.Task.Index)
	if !r.Resize.IsPending() {
		return AttemptResize{}, false
	}
	return newAttemptResize(j, a, r.Resize), true
}

// newAttemptResize is what the machine of an attempt is asked for.
func newAttemptResize(j *job, a roost.AttemptID, r *eventlog.ResizeRecord) AttemptResize {
	i := a.Task.Index
	wanted := AttemptResize{Attempt: a, Resources: resizedTo(j, i, r)}
	if next := j.classes[j.idleClass(i)]; j.spec.Service != nil && !next.spec.HasSameRequirements(j.class(i).spec) {
		wanted.RequestAd = next.request.Ad
	}
	return wanted
}

// resizedTo is what a task has when it has the size of a record.
func resizedTo(j *job, i int, r *eventlog.ResizeRecord) roost.Resources {
	size := j.class(i).request.Resources
	size.CPU, size.Memory = r.CPU, r.Memory
	return size
}

// newSize is what a task asks for as its job is now.
func newSize(j *job, i int) roost.Resources { return j.classes[j.idleClass(i)].spec.Resources }

// AttemptSize returns what a live attempt has by now, and the request that asks for it.
func (q attemptDecisions) AttemptSize(a roost.AttemptID) (RequestID, roost.Resources, bool) {
	if !q.IsLive(a) {
		return 0, roost.Resources{}, false
	}
	r := q.jobs[a.Task.Job.Seq].class(a.Task.Index).request
	return r.ID, r.Resources, true
}

// RecordResize decides what a machine has answered about the size of a live attempt. An
// answer about a size that nobody asked for is none.
func (q attemptDecisions) RecordResize(now time.Time, a roost.AttemptID, size roost.Resources,
	refusal string) (eventlog.JobEvent, bool) {
	wanted, ok := q.WantedSize(a)
	if !ok || wanted.Resources != size {
		return eventlog.JobEvent{}, false
	}
	e := eventAbout(now, eventlog.Resized, a)
	if refusal != "" && !mutant.Active(mutant.ResizeRefusalIgnored) {
		e.Type, e.Reason = eventlog.ResizeRefused, refusal
		return e, true
	}
	had := q.jobs[a.Task.Job.Seq].class(a.Task.Index).request.Resources
	if had == size {
		e.Reason = "its machine satisfies the new requirements"
		return e, true
	}
	e.Reason = fmt.Sprintf("%v cores and %v of memory, before %v and %v", size.CPU.Cores(), size.Memory,
		had.CPU.Cores(), had.Memory)
	return e, true
}

// apply folds in what happens to the sizes of attempts.
func (q taskResizes) apply(j *job, e eventlog.JobEvent) {
	switch e.Type {
	case eventlog.ResizeRequested:
		for _, span := range e.Ranges {
			for i := span.First; i <= span.Last; i++ {
				q.request(j, i, e.Time)
			}
		}
	case eventlog.Resized:
		q.applyResized(j, e)
	default:
		r := q.liveRecord(j, e)
		if !r.Resize.IsPending() {
			panic(fmt.Sprintf("queue: %v of %v, which is not resized", e.Type, j.id(q.host).Task(e.Index)))
		}
		answered := *r.Resize
		answered.Refusal = e.Reason
		r.Resize = &answered
	}
	q.markUpdate(j)
}

// request has the machine of a task asked for the size that the task asks for now.
func (q taskResizes) request(j *job, i int, at int64) {
	r := j.records.Own(i)
	if r == nil || !r.Live {
		return
	}
	next := eventlog.ResizeRecord{CPU: newSize(j, i).CPU, Memory: newSize(j, i).Memory, Asked: at, Tries: 1}
	if j.spec.Service != nil {
		next.Revision = revisionsOf(j).revision()
	}
	if was := r.Resize; was != nil && was.CPU == next.CPU && was.Memory == next.Memory {
		next.Tries = was.Tries + 1
	}
	r.Resize = &next
	q.resizes = append(q.resizes, newAttemptResize(j, q.attemptOf(j, i), &next))
}

// applyResized gives a task the class that asks for what it has now.
func (q taskResizes) applyResized(j *job, e eventlog.JobEvent) {
	r := q.liveRecord(j, e)
	if !r.Resize.IsPending() {
		panic(fmt.Sprintf("queue: %v is not resized", j.id(q.host).Task(e.Index)))
	}
	size, i := *r.Resize, e.Index
	r.Resize = nil
	current := newSize(j, i).CPU == size.CPU && newSize(j, i).Memory == size.Memory
	if t := revisionsOf(j).taskRevision(i); t != nil {
		current = current && size.Revision == revisionsOf(j).revision()
		if t.Revision, t.Exits = size.Revision, 0; r.Service.State == roost.ServiceReady {
			t.Since = e.Time // it has to prove itself with its new size
		}
	}
	if current {
		q.assignClass(j, i, j.idleClass(i))
	} else {
		q.pinOldClass(j, i, &oldAd{ad: adOfSize(j, i, size)})
	}
	q.updateRestoreClass(j, i)
}

// adOfSize is the ad that a task began with, and another size.
func adOfSize(j *job, i int, size eventlog.ResizeRecord) string {
	ad := parsedAd(j)
	if before := j.class(i).oldAd; before != nil {
		var err error
		if ad, err = classad.Parse(before.ad); err != nil {
			panic(err) // it was the job's own
		}
	}
	ad.SetReal(roost.AttrRequestCpus, size.CPU.Cores())
	ad.SetInt(roost.AttrRequestMemory, int64(size.Memory/roost.MiB))
	return ad.String()
}

// followAdmission is for an alteration of which it is known whether quotas allow it.
func (q taskResizes) followAdmission(j *job, e eventlog.JobEvent) {
	if e.Reason != "" {
		q.retainSizes(j, e)
	} else {
		q.followAlteration(j, e.Time)
	}
	q.markUpdate(j)
}

// retryResizes has machines asked again that had no room for what an alloc is to have.
// They are asked ever less often.
func retryResizes(now time.Time, j *job) (ranges []eventlog.IndexRange, again int64) {
	for i, s := range j.state {
		r := j.records.Own(i)
		if s != roost.Running || r.Resize == nil || r.Resize.IsPending() || r.Resize.Tries == 0 {
			continue
		}
		at := r.Resize.Asked + int64(resizeRetry)<<min(r.Resize.Tries-1, 6)
		switch {
		case at <= now.UnixNano():
			ranges = appendIndex(ranges, i)
		case again == 0 || at < again:
			again = at
		}
	}
	return ranges, again
}

// followAlteration has the running tasks of an altered job get the size that it asks for
// now. Tasks of arrays go on as they began.
func (q taskResizes) followAlteration(j *job, at int64) {
	if !resizesInPlace(j) || q.deferredJobs[j.seq] {
		return
	}
	for i, s := range j.state {
		if s == roost.Running {
			q.followOne(j, i, at)
		}
	}
}

func (q taskResizes) followOne(j *job, i int, at int64) {
	if !resizesInPlace(j) || q.deferredJobs[j.seq] || j.class(i).oldAd == nil {
		return
	}
	had, wants := j.class(i).request.Resources, newSize(j, i)
	if had.CPU != wants.CPU || had.Memory != wants.Memory {
		q.request(j, i, at)
	} else if r := j.records.Own(i); !r.Resize.IsPending() {
		r.Resize = nil
	}
}

// resizesInPlace reports whether the running tasks of a job follow an alteration of its
// size. Those of a service do so by its update, and what runs once goes on as it began
// (POSIX, qalter).
func resizesInPlace(j *job) bool { return j.spec.IsAlloc }

// isResizing reports whether the machine of some task has to answer about its size.
func isResizing(j *job) bool {
	for i, s := range j.state {
		if s.IsActive() && j.records.Own(i).Resize.IsPending() {
			return true
		}
	}
	return false
}

// retainSizes notes that quotas do not allow what an alteration asks for: what runs stays
// as it is.
func (q taskResizes) retainSizes(j *job, e eventlog.JobEvent) {
	for i, s := range j.state {
		had, wants := j.class(i).request.Resources, newSize(j, i)
		if s == roost.Running && resizesInPlace(j) && (had.CPU != wants.CPU || had.Memory != wants.Memory) {
			j.records.MakeOwn(i).Resize = &eventlog.ResizeRecord{CPU: wants.CPU, Memory: wants.Memory, Asked: e.Time,
				Refusal: e.Reason}
		}
	}
}

// resizeReason says what becomes of the size of a live attempt; empty: nothing.
func resizeReason(j *job, i int, r *eventlog.ResizeRecord) string {
	if r == nil {
		return ""
	}
	had := j.class(i).request.Resources
	switch same := had.CPU == r.CPU && had.Memory == r.Memory; {
	case same && r.IsPending():
		return "its machine is asked whether it satisfies the new requirements, and has not answered yet"
	case same:
		return "it cannot stay where it runs: " + r.Refusal
	case r.IsPending():
		return fmt.Sprintf("it is to have %v cores and %v of memory, and its machine has not answered yet",
			r.CPU.Cores(), r.Memory)
	}
	if at, ok := roomAskedAt(j, i, r); ok {
		return fmt.Sprintf("it waits for room for %v cores and %v of memory where it runs: %s; its machine is asked "+
			"again at %s, and if there is no room after %d more times it moves", r.CPU.Cores(), r.Memory, r.Refusal,
			time.Unix(0, at).UTC().Format(time.RFC3339), roomTries-r.Tries)
	}
	return fmt.Sprintf("it cannot have %v cores and %v of memory where it runs: %s", r.CPU.Cores(), r.Memory, r.Refusal)
}

// addResizeFacts adds whether a live attempt can get another size where it is.
func (j jobRevisions) addResizeFacts(i int, r *eventlog.TaskRecord, f *update.TaskFact) {
	asked := r.Resize
	switch {
	case j.update == nil:
		return
	case asked.IsPending():
		f.ResizeAsked = asked.Asked
		return
	case !j.update.Resizes(f.Revision) || j.state[i] != roost.Running || f.Condition < update.Starting ||
		f.Condition > update.Ready || j.spec.Update.ResizeByRestart && changesSize(j.job, i):
		return
	case asked == nil || asked.Revision != j.revision():
		f.Resizable = true
	case asked.Tries < resizeTries && asked.Memory < j.class(i).request.Resources.Memory:
		f.Resizable, f.ResizeAt = true, asked.Asked+int64(resizeRetry)
	default:
		if at, ok := roomAskedAt(j.job, i, asked); ok {
			f.Resizable, f.ResizeAt = true, at
		}
	}
}

// roomAskedAt is when the machine of a task is asked again for room. It is false if the
// task does not wait for that. Only tasks wait whose size follows their use: what they
// have is enough for now, and a user who asks for more does not want to wait.
func roomAskedAt(j *job, i int, r *eventlog.ResizeRecord) (at int64, ok bool) {
	had := j.class(i).request.Resources
	if j.spec.Service == nil || j.spec.Service.Sizes == nil || r.CPU <= had.CPU && r.Memory <= had.Memory ||
		r.Tries == 0 || r.Tries >= roomTries {
		return 0, false
	}
	if progress := j.spec.Update.Progress; progress > 0 && roomRetry<<(roomTries-1) > progress/2 {
		return 0, false // the update would fail meanwhile
	}
	return r.Asked + int64(roomRetry)<<(r.Tries-1), true
}

// changesSize reports whether a task asks for another size than it has.
func changesSize(j *job, i int) bool {
	had, wants := j.class(i).request.Resources, newSize(j, i)
	return had.CPU != wants.CPU || had.Memory != wants.Memory
}

// decideResizes decides which machines of an alloc set are asked again for its size.
func (q *serviceUpdates) decideResizes(now time.Time, j *job) (events []eventlog.JobEvent, again int64) {
	if !resizesInPlace(j) || q.awaitsQuota(j.seq) {
		return nil, 0
	}
	ranges, again := retryResizes(now, j)
	if len(ranges) > 0 {
		events = append(events, eventlog.JobEvent{Type: eventlog.ResizeRequested, Time: now.UnixNano(), Job: j.seq,
			Ranges: ranges, Reason: "the size of its alloc set"})
	}
	return events, again
}

// allocRevision checks what an update of an alloc set changes. It has no revisions: its
// tasks run nothing, and become larger or smaller where they are.
func allocRevision(j *job, plan *RevisionPlan) error {
	for i := plan.CountBefore; i < min(plan.Count, len(j.state)); i++ {
		if j.state[i].IsActive() {
			return fmt.Errorf("%w: alloc %d still ends, as there were to be fewer; try again", roost.Conflict, i)
		}
	}
	for _, c := range plan.Changes {
		if c.Effect > jobad.ResizeTask {
			return fmt.Errorf("%w: attribute %s of an alloc set cannot change, only its cpus and memory: submit "+
				"another one", roost.Conflict, c.Name)
		}
	}
	if plan.Effect > jobad.ResizeTask {
		return fmt.Errorf("%w: an alloc set runs nothing that could be started again", roost.Conflict)
	}
	return nil
}

// quotaRetry is how often an update is looked at that asks for more. That ends when it is
// known whether quotas allow it.
const quotaRetry = time.Second
