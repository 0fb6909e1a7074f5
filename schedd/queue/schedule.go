package queue

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cron"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// A job with a schedule never starts: its tasks are blocked. At each instant of its
// schedule a job is made of it, a run, with the submit key (job, instant). So there is
// one run for an instant, whatever happens in between: a leader that takes over finds
// the run by its key, or makes it. While the job is held no runs are made, and its end is
// the end of the schedule. Runs go on without it.
//
//	last           up to when instants are decided; it rises, unless the clock was set back
//	(last, now]    instants that are due
//
// A clock that goes back by less than maxStepBack is waited for. One that was set back by
// more was wrong before: instants are decided anew from there, and the keys show which of
// them have their runs.

// maxStepBack is how far the clock may go back and be waited for.
const maxStepBack = time.Hour

// lateRun is when an instant is missed: this long after it.
const lateRun = time.Minute

// jobSchedule is the schedule of a job, and how far it has come.
type jobSchedule struct {
	last     int64 // up to when instants are decided, unix seconds
	instants *cron.Schedule
	err      error // why this host cannot read it
	upcoming int64 // the first instant after last, unix seconds; 0: not computed yet
}

// next returns the first instant that is not decided, in unix seconds.
func (c *jobSchedule) next(j *job) int64 {
	if c.instants == nil && c.err == nil {
		c.instants, c.err = j.spec.Schedule.Parse(j.submission.owner, j.texts.name())
	}
	if c.upcoming == 0 {
		c.upcoming = c.after(c.last)
	}
	return c.upcoming
}

// after returns the first instant after a time, both in unix seconds.
func (c *jobSchedule) after(t int64) int64 {
	if c.err != nil {
		return math.MaxInt64
	}
	if at := c.instants.Next(time.Unix(t, 0)); !at.IsZero() {
		return at.Unix()
	}
	return math.MaxInt64
}

// waitReason says when the next run is due.
func (c *jobSchedule) waitReason(j *job) string {
	at := c.next(j)
	switch {
	case c.err != nil:
		return fmt.Sprintf("no runs are made, as this host cannot read the schedule: %v", c.err)
	case at == math.MaxInt64:
		return "no runs are due within the next years"
	}
	return "its next run is due at " + c.text(at)
}

// text writes an instant in the zone of the schedule.
func (c *jobSchedule) text(instant int64) string {
	at := time.Unix(instant, 0).UTC()
	if c.instants != nil {
		at = c.instants.In(at)
	}
	return at.Format("2006-01-02 15:04:05 -0700")
}

// addSchedule takes in what a new job has to do with schedules.
func (q *jobTable) addSchedule(j *job) {
	if j.spec.Schedule != nil {
		c := &jobSchedule{last: j.submitted / 1e9}
		j.ownExtras().schedule, q.schedules[j.seq] = c, c
	}
	if by, _, ok := RunOfKey(j.texts.key()); ok {
		if !slices.Contains(q.runs[by], j.seq) {
			q.runs[by] = append(q.runs[by], j.seq)
		}
	}
}

// removeSchedule forgets a job that leaves the queue.
func (q *jobTable) removeSchedule(j *job) {
	if j.schedule != nil {
		j.ownExtras().schedule = nil
		delete(q.schedules, j.seq)
	}
	if by, _, ok := RunOfKey(j.texts.key()); ok {
		q.runs[by] = slices.DeleteFunc(q.runs[by], func(seq uint64) bool { return seq == j.seq })
		if len(q.runs[by]) == 0 {
			delete(q.runs, by)
		}
	}
}

// resumeSchedule has a schedule go on from a time. What was due while its job was held or
// had ended is not made later.
func (q *jobTable) resumeSchedule(j *job, at int64) {
	if c := j.schedule; c != nil {
		c.last, c.upcoming = max(c.last, at), 0
	}
}

// advanceSchedule takes in that instants of a schedule are decided, or that its job is
// released or queued again.
func (q *jobTable) advanceSchedule(j *job, e eventlog.JobEvent) {
	switch c := j.schedule; {
	case c == nil:
	case e.Type == eventlog.Ticked || e.Type == eventlog.TickSkipped:
		c.last, c.upcoming = e.Instant, 0
	case e.Type == eventlog.Released || e.Type == eventlog.Retried:
		q.resumeSchedule(j, e.Time/1e9)
	}
}

// runKeyPrefix begins the submit keys of runs. Those of users begin with their uid.
const runKeyPrefix = "schedule:"

// runKey is the submit key of the run of a job for an instant.
func runKey(seq uint64, instant int64) string {
	return runKeyPrefix + strconv.FormatUint(seq, 10) + ":" + strconv.FormatInt(instant, 10)
}

// RunOfKey returns of which job and instant a run is, by its submit key.
func RunOfKey(key string) (by uint64, instant int64, ok bool) {
	text, ok := strings.CutPrefix(key, runKeyPrefix)
	if !ok {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(text, ":")
	by, err := strconv.ParseUint(first, 10, 64)
	instant, ierr := strconv.ParseInt(second, 10, 64)
	return by, instant, cmp.Or(err, ierr) == nil
}

// openRuns lists the runs of a schedule that have not ended, oldest first.
func (q *jobTable) openRuns(by uint64) (open []*job) {
	for _, seq := range q.runs[by] {
		if j := q.jobs[seq]; j != nil && !j.isFinal() {
			open = append(open, j)
		}
	}
	slices.SortFunc(open, func(a, b *job) int { return cmp.Compare(a.seq, b.seq) })
	return open
}

// isTicking reports whether runs of a job are made: it has a schedule, has not ended, and
// is not held.
func isTicking(j *job) bool { return j.schedule != nil && j.counts[roost.Blocked] > 0 }

// HasDueRuns reports whether a schedule has an instant to decide.
func (q *submissionIndex) HasDueRuns(now time.Time) bool {
	for seq, c := range q.schedules {
		if j := q.jobs[seq]; isTicking(j) && (c.next(j) <= now.Unix() || c.isAhead(now)) {
			return true
		}
	}
	return false
}

// isAhead reports whether the clock was set back by so much that it was wrong before.
func (c *jobSchedule) isAhead(now time.Time) bool {
	return now.Unix() < c.last-int64(maxStepBack.Seconds())
}

// DueRuns decides the instants of one schedule that are due: runs are made, or it is said
// why not. It returns nothing when no schedule has any. Asking twice is harmless.
func (q *submissionIndex) DueRuns(now time.Time, limits SubmitLimits) []eventlog.JobEvent {
	for _, seq := range slices.Sorted(maps.Keys(q.schedules)) {
		j := q.jobs[seq]
		if !isTicking(j) {
			continue
		}
		d := runDecision{submissionIndex: q, job: j, now: now, limits: limits,
			lastSeq: max(q.lastSeq, limits.LastSeq)}
		if d.decide(); len(d.events) > 0 {
			return d.events
		}
	}
	return nil
}

// runDecision decides the due instants of one schedule.
type runDecision struct {
	*submissionIndex
	job     *job
	now     time.Time
	limits  SubmitLimits
	lastSeq uint64 // of a job that this decision makes
	events  []eventlog.JobEvent
}

func (d *runDecision) decide() {
	c, now := d.job.schedule, d.now.Unix()
	if c.isAhead(d.now) {
		d.skip(now, fmt.Sprintf(clockReason+" from %s: instants from here on run unless they have",
			c.text(c.last)))
		return
	}
	if c.next(d.job) > now {
		return
	}
	due, tooLate := d.dueInstants()
	settings := d.job.spec.Schedule
	run := due
	if n := len(due); n > 0 {
		isLate := now-due[n-1] > int64(lateRun.Seconds())
		switch {
		case settings.Missed == jobad.MissedNone && isLate:
			run = nil
		case settings.Missed != jobad.MissedAll:
			run = due[n-1:]
		}
	}
	switch missed := due[:len(due)-len(run)]; {
	case tooLate && len(missed) == 0:
		d.skip(max(now-int64(settings.Deadline.Seconds()), c.last+1),
			fmt.Sprintf("missed: runs from %s on, later than the deadline allows", c.text(c.next(d.job))))
	case len(missed) == 1:
		d.skip(missed[0], "missed: the run of "+c.text(missed[0]))
	case len(missed) > 1:
		d.skip(missed[len(missed)-1], fmt.Sprintf("missed: %d runs from %s to %s", len(missed), c.text(missed[0]),
			c.text(missed[len(missed)-1])))
	}
	for i, instant := range run {
		d.decideRun(instant, i > 0)
	}
}

// dueInstants lists the instants that are due and not too late, the newest MaxMissed, in
// order. It reports whether there are earlier ones.
func (d *runDecision) dueInstants() (due []int64, tooLate bool) {
	c, now := d.job.schedule, d.now.Unix()
	at := c.next(d.job)
	if oldest := now - int64(d.job.spec.Schedule.Deadline.Seconds()); at < oldest {
		tooLate, at = true, c.after(oldest-1)
	}
	for ; at <= now; at = c.after(at) {
		if due = append(due, at); len(due) > 2*jobad.MaxMissed {
			due, tooLate = slices.Clone(due[len(due)-jobad.MaxMissed:]), true
		}
	}
	if n := len(due) - jobad.MaxMissed; n > 0 {
		due, tooLate = due[n:], true
	}
	return due, tooLate
}

// skip decides that instants have no runs.
func (d *runDecision) skip(instant int64, reason string) {
	d.events = append(d.events, eventlog.JobEvent{Type: eventlog.TickSkipped, Time: d.now.UnixNano(), Job: d.job.seq,
		Instant: instant, Reason: reason})
}

// decideRun makes the run of an instant, or says why not. One of several that were missed
// waits for the one before, unless they may overlap.
func (d *runDecision) decideRun(instant int64, isNext bool) {
	at, overlap := d.job.schedule.text(instant), d.job.spec.Schedule.Overlap
	key := runKey(d.job.seq, instant)
	if ids := d.submissionJobs(key, d.limits); len(ids) > 0 && !mutant.Active(mutant.RunDoubled) {
		d.tick(instant, ids[0].Seq, fmt.Sprintf("job %d is the run of %s", ids[0].Seq, at))
		return
	}
	var waits []eventlog.JobDependency
	open := d.openRuns(d.job.seq)
	switch {
	case overlap == jobad.OverlapAllow:
	case isNext && len(d.events) > 0 && d.events[len(d.events)-1].Type == eventlog.Ticked:
		waits = []eventlog.JobDependency{{Type: eventlog.AfterAny, Job: d.lastSeq}}
	case overlap == jobad.OverlapSkip && len(open) > 0:
		d.skip(instant, fmt.Sprintf("the run of %s: job %d has not ended", at, open[0].seq))
		return
	}
	who := CallerIdentity{User: d.job.submission.owner, UID: d.job.submission.uid, GID: d.job.submission.gid}
	if err := d.checkOpenLimit(who, len(d.job.state), d.limits); err != nil {
		d.skip(instant, fmt.Sprintf("the run of %s: %v", at, err))
		return
	}
	if overlap == jobad.OverlapReplace && !isNext {
		for _, o := range open {
			if d.events = append(d.events, eventlog.JobEvent{Type: eventlog.RemovalRequested, Time: d.now.UnixNano(),
				Job: o.seq, Reason: "replaced by the run of " + at}); o.active > 0 {
				waits = append(waits, eventlog.JobDependency{Type: eventlog.AfterAny, Job: o.seq})
			}
		}
	}
	submitted := d.newRun(instant, key, waits)
	made := fmt.Sprintf("job %d is the run of %s", submitted.Job, at)
	if mutant.Active(mutant.RunLost) { // in the wrong order
		d.tick(instant, submitted.Job, made)
		d.events = append(d.events, submitted)
		return
	}
	d.events = append(d.events, submitted)
	d.tick(instant, submitted.Job, made)
}

// clockReason begins the reason of instants that are decided anew.
const clockReason = "the clock was set back"

// WasSkipped reports whether an event says that instants of a schedule have no run. Those
// before which the clock was set back are decided anew.
func WasSkipped(e *eventlog.JobEvent) bool {
	return e.Type == eventlog.TickSkipped && !strings.HasPrefix(e.Reason, clockReason)
}

// tick decides that an instant has its run. It comes behind the run in the log: where
// the log ends between the two, the run is found by its key.
func (d *runDecision) tick(instant int64, run uint64, reason string) {
	d.events = append(d.events, eventlog.JobEvent{Type: eventlog.Ticked, Time: d.now.UnixNano(), Job: d.job.seq,
		Instant: instant, Run: run, Reason: reason})
}

// newRun returns the submission of the run of an instant.
func (d *runDecision) newRun(instant int64, key string, waits []eventlog.JobDependency) eventlog.JobEvent {
	d.lastSeq++
	j, ad := d.job, parsedAd(d.job)
	for _, name := range []string{roost.AttrSchedule, roost.AttrHoldOnSubmit, roost.AttrAlterations} {
		ad.Delete(name)
	}
	ad.SetString(roost.AttrJobID, roost.JobID{Seq: d.lastSeq, Host: d.host}.String())
	ad.SetInt(roost.AttrQDate, d.now.Unix())
	ad.SetInt(roost.AttrScheduledAt, instant)
	ad.SetString(roost.AttrScheduledBy, j.id(d.host).String())
	environment, _ := ad.Strings(roost.AttrEnvironment)
	ad.SetStrings(roost.AttrEnvironment, append(slices.Clone(environment),
		"ROOST_SCHEDULED_AT="+time.Unix(instant, 0).UTC().Format(time.RFC3339)))
	sub := &eventlog.SubmittedJob{Key: key, PartCount: 1, Owner: j.submission.owner, UID: j.submission.uid,
		GID: j.submission.gid, Ad: ad.String(), Count: len(j.state), Columns: j.submission.columns,
		Dependencies: waits, DeferredAdmission: true}
	if j.spec.Checkpoints != nil && d.limits.NewSecret != nil {
		sub.Secret = d.limits.NewSecret()
	}
	return eventlog.JobEvent{Type: eventlog.Submitted, Time: d.now.UnixNano(), Job: d.lastSeq, Submission: sub}
}
