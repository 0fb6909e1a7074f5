package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service may have the size of its tasks follow their use, see [autoscale.DecideSize].
// Another size is another revision of the service: its tasks get it where they run, and
// where there is no room for that they are replaced within the budget, as by an update of
// its user. What is measured is in memory only: after a restart a service does not shrink
// until a whole window has passed again.

// serviceSizer is what is known of a service whose tasks have a size that follows their
// use.
type serviceSizer struct {
	next     int64 // when it is to be looked at, unix nanoseconds
	at       int64 // when it was last looked at
	measures map[int]taskMeasure
	history  autoscale.UseHistory
	last     autoscale.SizeDecision
	problem  string // why what is wanted is not done
	refusal  string // of its quota, for the last growth that was tried
	asking   bool   // whether its quota allows a growth
}

// sizeEvery is how often the size of a service is looked at.
const sizeEvery = 15 * time.Second

// sizerOf returns the sizer of a job.
func sizerOf(j *job) *serviceSizer {
	if j.sizer == nil {
		j.ownExtras().sizer = &serviceSizer{measures: map[int]taskMeasure{}}
	}
	return j.sizer
}

// noteSizeUse takes in what an attempt has used of cores since it began, and uses of
// memory. It counts when a span for the use of cores is over.
func (q serviceScaling) noteSizeUse(now time.Time, a roost.AttemptID, cpu, wall time.Duration, memory roost.Bytes) {
	if !q.table.IsLive(a) {
		return
	}
	j := q.table.jobs[a.Task.Job.Seq]
	if j.spec.Service == nil || j.spec.Service.Sizes == nil {
		return
	}
	s := sizerOf(j)
	m, ok := s.measures[a.Task.Index]
	if span := wall - m.wall; ok && m.attempt == a.Attempt && span >= 0 && cpu >= m.cpu {
		m.value = max(m.value, float64(memory))
		if span >= minUseTime {
			s.history.Add(j.spec.Service.Sizes, now.UnixNano(), roost.MilliCPU(1000*float64(cpu-m.cpu)/float64(span)),
				roost.Bytes(m.value))
			m.cpu, m.wall, m.value = cpu, wall, 0
		}
	} else {
		m = taskMeasure{attempt: a.Attempt, cpu: cpu, wall: wall, value: float64(memory)}
	}
	s.measures[a.Task.Index] = m
}

// decideSize decides about the size of one service.
func (q serviceScaling) decideSize(now time.Time, j *job) (e eventlog.JobEvent, ok bool) {
	s, p := sizerOf(j), j.spec.Service.Sizes
	if s.asking || j.isFinal() || s.next > now.UnixNano() && s.next-now.UnixNano() <= int64(sizeEvery) {
		return e, false
	}
	s.next, s.at, s.problem = now.UnixNano()+int64(sizeEvery), now.UnixNano(), ""
	for i := range s.measures { // those of tasks that are gone
		if i >= len(j.state) || !j.state[i].IsActive() {
			delete(s.measures, i)
		}
	}
	has, changed := jobad.SizeOf(&j.spec.JobSpec), int64(0)
	if j.update != nil {
		changed = j.update.Begun
	}
	s.last = autoscale.DecideSize(p, has, &s.history, changed, now.UnixNano())
	switch {
	case s.last.Size == has:
		if s.last.Wanted == has {
			s.refusal = ""
		}
		return e, false
	case j.update != nil && j.update.State.IsActive():
		s.problem = fmt.Sprintf("its update is %v, and its size stays until that has ended", j.update.State)
		return e, false
	}
	e, err := q.sizeEvent(now, j, s.last.Size)
	if err != nil {
		s.problem = err.Error()
		return e, false
	}
	e.Reason = "its size follows its use: " + s.last.Reason
	return e, true
}

// sizeEvent gives a service a revision of another size.
func (q serviceScaling) sizeEvent(now time.Time, j *job, size autoscale.Size) (eventlog.JobEvent, error) {
	ad := parsedAd(j)
	setSize(ad, j.spec.Service.Sizes, size)
	owner := CallerIdentity{User: j.submission.owner, UID: j.submission.uid, GID: j.submission.gid}
	events, _, err := taskDecisions{q.table}.ReviseJob(now, owner, TaskSelector{Job: j.id(q.table.host)},
		JobRevision{Ad: ad, Count: taskCount(j), Columns: j.submission.columns, SizeOnly: true}, SubmitLimits{})
	if err != nil {
		return eventlog.JobEvent{}, err
	}
	if len(events) != 1 || events[0].Update == nil {
		return eventlog.JobEvent{}, fmt.Errorf("%w: another size is no other revision", roost.Conflict)
	}
	events[0].RequestedBy = ""
	return events[0], nil
}

// setSize sets what a policy may change of a size.
func setSize(ad *classad.Ad, p *autoscale.SizePolicy, size autoscale.Size) {
	if p.SizesCPU() {
		ad.SetReal(roost.AttrRequestCpus, size.CPU.Cores())
	}
	if p.SizesMemory() {
		ad.SetInt(roost.AttrRequestMemory, int64((size.Memory+roost.MiB-1)/roost.MiB))
	}
}

// retainSize has a service retain the size that its tasks have got by their use. It does
// so within the bounds of its new revision: the size in a job file is for the beginning.
func retainSize(j *job, after *classad.Ad) {
	p, err := jobad.ReadSpec(after)
	if err != nil || p.Service == nil || p.Service.Sizes == nil || j.spec.Service == nil ||
		j.spec.Service.Sizes == nil {
		return
	}
	setSize(after, p.Service.Sizes, p.Service.Sizes.Clamp(jobad.SizeOf(&j.spec.JobSpec)))
}

// sizeAnswered is QuotaAnswered for a revision of another size.
func (q serviceScaling) sizeAnswered(now time.Time, j *job, e eventlog.JobEvent, refusal string) []eventlog.JobEvent {
	s := sizerOf(j)
	s.asking = false
	if s.refusal = refusal; refusal != "" || j.isFinal() || j.spec.Service == nil || j.spec.Service.Sizes == nil ||
		j.update != nil && j.update.State.IsActive() {
		return nil
	}
	again, err := q.sizeEvent(now, j, s.last.Size)
	if err != nil || again.Submission.Ad != e.Submission.Ad {
		return nil
	}
	again.Reason, again.Submission.DeferredAdmission = e.Reason, false
	return []eventlog.JobEvent{again}
}

// SizeStatus is what is told of how the size of a service's tasks follows their use.
type SizeStatus struct {
	Policy   autoscale.SizePolicy
	Size     autoscale.Size // that they ask for now
	Decision autoscale.SizeDecision
	At       int64  // of the last decision, unix nanoseconds; 0: there was none yet
	Problem  string // why what was decided is not done; empty: it is
}

// sizeStatus tells how the size of a service's tasks follows their use; nil where it does
// not.
func (j serviceTasks) sizeStatus() *SizeStatus {
	if j.spec.Service == nil || j.spec.Service.Sizes == nil {
		return nil
	}
	a := &SizeStatus{Policy: *j.spec.Service.Sizes, Size: jobad.SizeOf(&j.spec.JobSpec)}
	if s := j.sizer; s != nil && s.at != 0 {
		a.Decision, a.At, a.Problem = s.last, s.at, s.problem
		if s.refusal != "" {
			a.Problem = "its quota does not let it grow: " + s.refusal
		}
	}
	if waits := j.roomWaits(); waits != "" {
		a.Problem = waits
	}
	return a
}

// roomWaits says which tasks wait until their machines have room for more; empty: none
// does.
func (j serviceTasks) roomWaits() string {
	if j.update == nil || !j.update.State.IsActive() {
		return ""
	}
	waiting, text := 0, ""
	for i, s := range j.state {
		if !s.IsActive() {
			continue
		}
		r := j.records.Get(i).Resize
		if r == nil || r.IsPending() {
			continue
		}
		if _, ok := roomAskedAt(j.job, i, r); ok {
			if waiting++; waiting == 1 {
				text = fmt.Sprintf("task %d: %s", i, resizeReason(j.job, i, r))
			}
		}
	}
	if waiting > 1 {
		text += fmt.Sprintf("; %d tasks wait for room in all", waiting)
	}
	return text
}

// ScaleTotals is how many services are scaled, and by how much.
type ScaleTotals struct {
	Services     int            // whose number of tasks follows their load
	Tasks        int            // of these: that they have
	WantedTasks  int            // that their load asks for
	Sized        int            // services whose size follows their use
	Size, Wanted autoscale.Size // of all their tasks together
}

// ScaleTotals adds up all services that are scaled. It looks at each, and at no task.
func (q serviceScaling) ScaleTotals() (sum ScaleTotals) {
	for seq := range q.table.scaled {
		j := q.table.jobs[seq]
		if j.spec.Service == nil || j.isFinal() {
			continue
		}
		n := serviceTasks{j}.wanted()
		if j.spec.Service.Autoscale != nil {
			sum.Services, sum.Tasks, sum.WantedTasks = sum.Services+1, sum.Tasks+n, sum.WantedTasks+n
			if j.scaler != nil && len(j.scaler.points) > 0 {
				sum.WantedTasks += j.scaler.last.Wanted - n
			}
		}
		if j.spec.Service.Sizes != nil {
			has := jobad.SizeOf(&j.spec.JobSpec)
			wanted := has
			if j.sizer != nil && j.sizer.at != 0 {
				wanted = j.sizer.last.Wanted
			}
			sum.Sized++
			sum.Size.CPU += has.CPU * roost.MilliCPU(n)
			sum.Size.Memory += has.Memory * roost.Bytes(n)
			sum.Wanted.CPU += wanted.CPU * roost.MilliCPU(n)
			sum.Wanted.Memory += wanted.Memory * roost.Bytes(n)
		}
	}
	return sum
}

// ScaleOutcome is what became of a look at a service that is scaled.
type ScaleOutcome uint8

// The outcomes.
const (
	ScaledUp ScaleOutcome = iota
	ScaledDown
	ScaleRefused // by a quota
)

// ScaleOutcomeOf returns whether an event, which was not applied yet, makes a service
// larger or smaller. It is false for any other event.
func (q serviceScaling) ScaleOutcomeOf(e *eventlog.JobEvent) (o ScaleOutcome, sized, ok bool) {
	j := q.table.jobs[e.Job]
	if j == nil || j.spec.Service == nil {
		return o, false, false
	}
	switch {
	case e.Type == eventlog.Scaled:
		if e.Submission.Count < taskCount(j) {
			return ScaledDown, false, true
		}
		return ScaledUp, false, true
	case e.Type == eventlog.Revised && e.RequestedBy == "" && e.Update != nil && e.Update.State == update.Rolling &&
		j.sizer != nil:
		has := jobad.SizeOf(&j.spec.JobSpec)
		if d := j.sizer.last.Size; d.CPU < has.CPU || d.Memory < has.Memory {
			return ScaledDown, true, true
		}
		return ScaledUp, true, true
	}
	return o, false, false
}
