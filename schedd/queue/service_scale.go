package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service may have its number of tasks follow its load, see package autoscale. What is
// measured, and what was recommended, is in memory only: after a restart a service does
// not shrink until the window for that has passed again. Each change is in the log.

// serviceScaler is what is known of a service whose number of tasks follows its load.
type serviceScaler struct {
	next        int64 // when it is to be looked at, unix nanoseconds
	measures    map[int]taskMeasure
	recommended []autoscale.Recommendation
	count       int // tasks that it had when it was last looked at, or that it was given since
	last        autoscale.Decision
	problem     string // why what is wanted is not done
	refusal     string // of its quota, for the last growth that was tried
	step        int    // after a refusal: how many tasks may be added at a time; 0: any number
	asking      bool   // whether its quota allows a growth
	points      []ScalePoint
	unread      string // why the metric of a task had no value, the last time that this was so
}

// ScalePoint is what was decided at one time.
type ScalePoint struct {
	At            int64 // unix nanoseconds
	Count, Wanted int
	Average       float64 // of the source, in one task
	Measured      int
}

// maxScalePoints bounds the decisions that are retained, for charts.
const maxScalePoints = 240

// taskMeasure is what was last measured of a task.
type taskMeasure struct {
	attempt   roost.AttemptNumber
	value     float64
	at        int64         // unix nanoseconds
	cpu, wall time.Duration // where the use of cores began to be measured
}

// minUseTime is over how much time the use of cores is measured at least.
const minUseTime = 10 * time.Second

// staleAfter is after how long a measurement does not count any more.
func staleAfter(p *autoscale.Policy) time.Duration { return max(3*p.Every, time.Minute) }

// serviceScaling decides how many tasks services have that follow their load.
type serviceScaling struct {
	table *jobTable
	index *requestIndex
}

// policyOf returns the scaling of a live attempt's service; nil for any other.
func (q serviceScaling) policyOf(a roost.AttemptID) (*job, *autoscale.Policy) {
	if !q.table.IsLive(a) {
		return nil, nil
	}
	j := q.table.jobs[a.Task.Job.Seq]
	if j.spec.Service == nil {
		return nil, nil
	}
	return j, j.spec.Service.Autoscale
}

// scalerOf returns the scaler of a job.
func scalerOf(j *job) *serviceScaler {
	if j.scaler == nil {
		j.ownExtras().scaler = &serviceScaler{measures: map[int]taskMeasure{}}
	}
	return j.scaler
}

// NoteMetric takes in the value of the metric of an attempt that its service is scaled
// by. A machine says what its task says, which may be anything.
func (q serviceScaling) NoteMetric(now time.Time, a roost.AttemptID, value float64) {
	if j, p := q.policyOf(a); p != nil && p.Source == autoscale.TaskMetric {
		scalerOf(j).measures[a.Task.Index] = taskMeasure{attempt: a.Attempt, value: value, at: now.UnixNano()}
	}
}

// NoteMetricProblem takes in why the metric of an attempt has no value. What it was
// before counts until it is too old.
func (q serviceScaling) NoteMetricProblem(a roost.AttemptID, problem string) {
	if j, p := q.policyOf(a); p != nil && p.Source == autoscale.TaskMetric {
		scalerOf(j).unread = fmt.Sprintf("%v: %s", a.Task, problem)
	}
}

// NoteUse takes in what an attempt has used of cores since it began, and uses of memory.
func (q serviceScaling) NoteUse(now time.Time, a roost.AttemptID, cpu, wall time.Duration, memory roost.Bytes) {
	q.noteSizeUse(now, a, cpu, wall, memory)
	j, p := q.policyOf(a)
	if p == nil || p.Source != autoscale.CPUUse && p.Source != autoscale.MemoryUse {
		return
	}
	s, asked := scalerOf(j), j.class(a.Task.Index).spec.Resources
	if p.Source == autoscale.MemoryUse {
		s.measures[a.Task.Index] = taskMeasure{attempt: a.Attempt, at: now.UnixNano(),
			value: float64(memory) / float64(max(asked.Memory, 1))}
		return
	}
	m, ok := s.measures[a.Task.Index]
	if !ok || m.attempt != a.Attempt || wall < m.wall || cpu < m.cpu {
		m = taskMeasure{attempt: a.Attempt, cpu: cpu, wall: wall}
	} else if span := wall - m.wall; span >= minUseTime {
		m.value = float64(cpu-m.cpu) / float64(span) / asked.CPU.Cores()
		m.cpu, m.wall, m.at = cpu, wall, now.UnixNano()
	}
	s.measures[a.Task.Index] = m
}

// DecideScaling decides which services get another number of tasks now. Their quotas are
// to be asked about events with DeferredAdmission.
func (q serviceScaling) DecideScaling(now time.Time) (events []eventlog.JobEvent) {
	for _, seq := range slices.Sorted(maps.Keys(q.table.scaled)) {
		j := q.table.jobs[seq]
		if j.spec.Service.Sizes != nil {
			if e, ok := q.decideSize(now, j); ok {
				events = append(events, e)
				continue // they are of the same ad
			}
		}
		p := j.spec.Service.Autoscale
		if p == nil {
			continue
		}
		s := scalerOf(j)
		if s.asking || j.isFinal() || s.next > now.UnixNano() && s.next-now.UnixNano() <= int64(p.Every) {
			continue
		}
		s.next = now.UnixNano() + int64(p.Every)
		if e, ok := q.decideScale(now, j, s, p); ok {
			events = append(events, e)
		}
	}
	return events
}

// NextScaling is when DecideScaling has something to decide next; zero for never.
func (q serviceScaling) NextScaling() (at time.Time) {
	look := func(next int64) {
		if t := time.Unix(0, next); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for seq := range q.table.scaled {
		j := q.table.jobs[seq]
		if s := j.sizer; s != nil && !s.asking && !j.isFinal() && j.spec.Service.Sizes != nil {
			look(s.next)
		}
		if s := j.scaler; s != nil && !s.asking && !j.isFinal() && j.spec.Service.Autoscale != nil {
			look(s.next)
		}
	}
	return at
}

// decideScale decides about one service.
func (q serviceScaling) decideScale(now time.Time, j *job, s *serviceScaler, p *autoscale.Policy) (
	e eventlog.JobEvent, ok bool) {
	count := serviceTasks{j}.wanted()
	if s.count != 0 && s.count != count { // its user wants so many for now
		s.recommended = nil
	}
	past := autoscale.Past{Recommended: s.recommended}
	if j.scaled != nil {
		past.Changes = j.scaled.Changes
	}
	d := autoscale.Decide(p, count, q.measurement(now, j, s, p), past, now)
	s.count, s.recommended, s.last, s.problem = count, d.Recommended, d, ""
	s.points = append(s.points, ScalePoint{now.UnixNano(), count, d.Wanted, d.Average(), d.Measured})
	s.points = s.points[max(len(s.points)-maxScalePoints, 0):]
	if d.Missing > 0 {
		s.problem = s.unread
	}
	s.unread = ""
	if d.Count <= count {
		s.refusal, s.step = "", 0
	}
	if d.Count == count {
		return e, false
	}
	if u := j.update; u != nil && u.State.IsActive() && u.State != update.Rolling && u.State != update.Undoing {
		s.problem = fmt.Sprintf("its update is %v, and its number of tasks stays until it goes on", u.State)
		return e, false
	}
	if s.step > 0 {
		d.Count = min(d.Count, count+s.step)
	}
	if d.Count > count && !(serviceTasks{j}).runsAny() {
		s.problem = "it is held, and gets no more tasks until it goes on"
		return e, false
	}
	sub, err := q.scaledJob(j, d.Count)
	if err != nil {
		s.problem = err.Error()
		return e, false
	}
	return eventlog.JobEvent{Type: eventlog.Scaled, Time: now.UnixNano(), Job: j.seq, Submission: sub,
		Reason: d.Reason}, true
}

// measurement is what is known of the tasks of a service.
func (q serviceScaling) measurement(now time.Time, j *job, s *serviceScaler,
	p *autoscale.Policy) (m autoscale.Measurement) {
	m.Tasks = make([]autoscale.TaskMeasure, serviceTasks{j}.wanted())
	for i := range m.Tasks {
		r := j.records.Own(i)
		if r == nil || !r.Live || r.Service == nil || r.Condition() != update.Ready {
			continue
		}
		t, ok := s.measures[i]
		age := time.Duration(now.UnixNano() - t.at)
		m.Tasks[i] = autoscale.TaskMeasure{Ready: true, Value: t.value,
			Known: ok && t.attempt == r.Attempt && t.at != 0 && age >= 0 && age < staleAfter(p)}
	}
	for i := range s.measures { // those of tasks that are gone
		if i >= len(j.state) || !j.state[i].IsActive() {
			delete(s.measures, i)
		}
	}
	if p.Source == autoscale.WaitingTasks {
		m.Waiting = q.waitingTasks(j, p)
	}
	return m
}

// waitingTasks counts the tasks that wait for a machine, of a queue or of jobs of the
// owner. Those of services do not count.
func (q serviceScaling) waitingTasks(j *job, p *autoscale.Policy) (n int) {
	for _, r := range q.index.requests {
		if r.Service != nil || r.Ready == 0 || p.WaitingQueue != "" && r.Queue != p.WaitingQueue ||
			p.WaitingQueue == "" && r.Owner != j.submission.owner {
			continue
		}
		if p.WaitingQueue != "" {
			n += r.Ready
			continue
		}
		for _, c := range r.classes {
			if c.job.texts.name() == p.WaitingJob {
				n += c.count
			}
		}
	}
	return n
}

// scaledJob returns what changes when a service gets another number of tasks.
func (q serviceScaling) scaledJob(j *job, count int) (*eventlog.SubmittedJob, error) {
	before := jobad.SubmitSpec{Ad: parsedAd(j), Count: taskCount(j), Columns: j.submission.columns}
	after := jobad.SubmitSpec{Ad: before.Ad.Copy(), Count: before.Count, Columns: before.Columns}
	if err := changeCount(j, &after, JobRevision{Count: count}); err != nil {
		return nil, err
	}
	return taskDecisions{q.table}.checkChanged(j, CallerIdentity{User: j.submission.owner, UID: j.submission.uid,
		GID: j.submission.gid}, &before, &after, jobad.Difference(before.Ad, after.Ad), SubmitLimits{})
}

// AskQuota notes that the quota of a service is asked about its growth by an event.
func (q serviceScaling) AskQuota(e *eventlog.JobEvent) {
	switch j := q.table.jobs[e.Job]; {
	case j == nil:
	case e.Type == eventlog.Revised:
		sizerOf(j).asking = true
	default:
		scalerOf(j).asking = true
	}
}

// QuotaAnswered takes in whether the quota of a service allows a growth. It returns the
// event for it unless something else has happened meanwhile. After a refusal half of it
// is tried the next time.
func (q serviceScaling) QuotaAnswered(now time.Time, e eventlog.JobEvent, refusal string) []eventlog.JobEvent {
	j := q.table.jobs[e.Job]
	if j == nil {
		return nil
	}
	if e.Type == eventlog.Revised {
		return q.sizeAnswered(now, j, e, refusal)
	}
	s := scalerOf(j)
	s.asking = false
	count := taskCount(j)
	if refusal != "" {
		s.refusal, s.step = refusal, max((e.Submission.Count-count)/2, 1)
		return nil
	}
	sub, err := q.scaledJob(j, e.Submission.Count)
	if s.count != count || j.isFinal() || err != nil || sub.Ad != e.Submission.Ad {
		return nil
	}
	e.Time, e.Submission, s.refusal, s.step = now.UnixNano(), sub, "", 0
	sub.DeferredAdmission = false
	return []eventlog.JobEvent{e}
}

// applyScaled gives a service another number of tasks.
func (q *Queue) applyScaled(j *job, e eventlog.JobEvent) {
	from, to := taskCount(j), e.Submission.Count
	next := &eventlog.ScaleRecord{Reason: e.Reason}
	if j.scaled != nil {
		next.Changes = autoscale.Prune(j.scaled.Changes, e.Time)
	}
	next.Changes = append(next.Changes, autoscale.Change{At: e.Time, From: from, To: to})
	q.applyAltered(j, e)
	x := j.ownExtras()
	if x.scaled = next; x.scaler != nil {
		x.scaler.count = to
	}
}

// retainedCount is how many tasks a service has after an update. One whose number of
// tasks follows its load retains those that it has, as far as its bounds allow.
func retainedCount(present int, after *classad.Ad, stated int) int {
	p, err := jobad.ReadSpec(after)
	if err != nil || p.Service == nil || p.Service.Autoscale == nil {
		return stated
	}
	return p.Service.Autoscale.Clamp(present)
}

// checkCountOnly refuses a number of tasks outside of the bounds of a service whose
// number of tasks follows its load.
func checkCountOnly(j *job, count int) error {
	if j.spec.Service == nil { // it is an alloc set
		return nil
	}
	p := j.spec.Service.Autoscale
	if p == nil || count == p.Clamp(count) {
		return nil
	}
	return fmt.Errorf("%w: its autoscale block allows %d to %d tasks, and %d are wanted: change min or max with roost "+
		"update, or take the block out", roost.Conflict, p.Min, p.Max, count)
}

// AutoscaleStatus is what is told of how the number of tasks of a service follows its
// load.
type AutoscaleStatus struct {
	Policy   autoscale.Policy
	Decision autoscale.Decision // the last one; its Reason is empty if there was none yet
	At       int64              // of the last decision, unix nanoseconds; 0: there was none yet
	Problem  string             // why what was decided is not done; empty: it is
	Changes  []autoscale.Change
	Reason   string // of the last change
	Points   []ScalePoint
}

// autoscaleStatus tells how the number of tasks of a service follows its load; nil where
// it does not.
func (j serviceTasks) autoscaleStatus() *AutoscaleStatus {
	if j.spec.Service == nil || j.spec.Service.Autoscale == nil {
		return nil
	}
	a := &AutoscaleStatus{Policy: *j.spec.Service.Autoscale}
	if j.scaled != nil {
		a.Changes, a.Reason = j.scaled.Changes, j.scaled.Reason
	}
	if s := j.scaler; s != nil && len(s.points) > 0 {
		a.Decision, a.Problem, a.Points = s.last, s.problem, s.points
		if a.At = s.points[len(s.points)-1].At; s.refusal != "" {
			a.Problem = "its quota does not let it grow: " + s.refusal
		}
	}
	return a
}
