package feed

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// Draft is an entry that has no number yet. What is read from the ad of a job is added
// where the entry is encoded, because the loop of the schedd has no time for it.
type Draft struct {
	accounting.FeedEntry
	Ad adtext.Packed // of the job, where Job is set
}

// Deriver makes the entries that follow from the events of a queue. Which entries there
// are depends on the events alone: to replay them gives the same entries.
//
//	Before(q, e); q.Apply(e); After(q, e)
type Deriver struct {
	source accounting.SourceID
	host   string
	before queue.JobPhase
	drafts []Draft
}

// NewDeriver returns the deriver of a queue.
func NewDeriver(source accounting.SourceID, host string) *Deriver {
	return &Deriver{source: source, host: host}
}

// Before takes in an event that the queue is about to apply. The end of an attempt has to
// be seen here: the queue forgets most of it.
func (d *Deriver) Before(q *queue.Queue, e *queue.JobEvent) {
	d.before = q.JobPhase(e.Job)
	if e.Type == queue.Ended || e.Type == queue.Lost {
		if a, live := q.AccountedAttempt(e.Job, e.Index); live && a.Attempt == e.Attempt {
			d.add(accounting.FeedEntry{Attempt: attemptEntry(d.jobKey(q, e.Job), e, &a)})
		}
	}
}

// After takes in the event when it is applied.
func (d *Deriver) After(q *queue.Queue, e *queue.JobEvent) {
	d.addActions(q, e)
	if changesJob(e.Type) || q.JobPhase(e.Job) != d.before {
		if j, there := q.AccountedJob(e.Job); there {
			d.drafts = append(d.drafts, jobDraft(d.jobKey(q, e.Job), d.host, &j, e.Time))
		}
	}
}

// changesJob reports whether an event always makes a new entry of its job.
func changesJob(t queue.EventType) bool {
	return t == queue.Submitted || t == queue.Altered || t == queue.Returned
}

// canEndJob reports whether an event can be the one with which a job ends.
func canEndJob(t queue.EventType) bool {
	switch t {
	case queue.Ended, queue.Lost, queue.RemovalRequested, queue.Dropped:
		return true
	}
	return false
}

func (d *Deriver) jobKey(q *queue.Queue, seq uint64) accounting.JobKey {
	return accounting.JobKey{Month: accounting.MonthOf(millis(q.JobPhase(seq).Submitted)), Source: d.source, Seq: seq}
}

func (d *Deriver) add(e accounting.FeedEntry) { d.drafts = append(d.drafts, Draft{FeedEntry: e}) }

// Take returns the entries so far.
func (d *Deriver) Take() []Draft {
	drafts := d.drafts
	d.drafts = nil
	return drafts
}

// jobDraft makes the entry of a job that ended then, if it has ended.
func jobDraft(key accounting.JobKey, host string, j *queue.AccountedJob, ended int64) Draft {
	entry := &accounting.JobEntry{
		JobKey: key, Host: host, Name: j.Name, Owner: j.Owner, UID: j.UID, GID: j.GID, Group: j.Group, Band: j.Band,
		Queue: j.Queue, Array: j.Array, Tasks: j.Tasks, Request: j.Resources, Walltime: j.Walltime / 1e6,
		Submitted: millis(j.Submitted), Eligible: millis(j.Eligible),
	}
	if j.Final {
		entry.Ended, entry.Removed = millis(ended), j.Removed
	}
	return Draft{FeedEntry: accounting.FeedEntry{Job: entry}, Ad: j.Ad}
}

func millis(nanoseconds int64) accounting.Millis { return accounting.Millis(nanoseconds / 1e6) }

// attemptEntry makes the entry of an attempt that an event is the end of.
func attemptEntry(job accounting.JobKey, e *queue.JobEvent, a *queue.AccountedAttempt) *accounting.AttemptEntry {
	entry := &accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{JobKey: job, Index: e.Index, Attempt: a.Attempt},
		Node:       a.Node, AppClass: a.AppClass, Assigned: millis(a.Assigned), Started: millis(a.Started),
		Ended: millis(e.Time), Held: a.Resources,
	}
	if x := e.Exit; x != nil {
		entry.Wall, entry.UserCPU, entry.SystemCPU = x.Wall/1e6, x.User/1e6, x.System/1e6
		entry.Peak = roost.Resources{Memory: roost.Bytes(max(x.Used.Peak, 0)), Disk: roost.Bytes(max(x.Used.Disk, 0)),
			GPUMemory: roost.Bytes(max(x.Used.PeakGPU, 0))}
		if entry.Peak.Memory == 0 {
			entry.Peak.Memory = roost.Bytes(max(x.MaxRSS, 0))
		}
		entry.Read, entry.Written = x.Used.Read, x.Used.Written
		entry.Cause, entry.ExitCode, entry.Signal = endCause(x), x.Code, x.Signal
		if !x.IsSuccess() {
			entry.Reason = x.Describe()
		}
		if entry.Started == 0 && entry.Wall > 0 { // its node told of the end alone, as to a schedd that was killed
			entry.Started = max(entry.Ended-accounting.Millis(entry.Wall), entry.Assigned)
		}
	} else {
		// its node has told nothing: the schedd's clock is the best there is
		entry.Cause, entry.Reason = accounting.EndedMachine, e.Reason
		if a.Started != 0 {
			entry.Wall = max(e.Time-a.Started, 0) / 1e6
		}
	}
	addSegments(entry, a, e.Time)
	switch {
	case e.Exit != nil && e.Exit.Cause == queue.CauseExited:
		entry.Useful = entry.Wall
	case a.Saved.Wall > a.Origin.Wall:
		entry.Useful = min((a.Saved.Wall-a.Origin.Wall)/1e6, entry.Wall)
	}
	return entry
}

// endCause translates a cause: both count in the same order. Of a job that calls another
// exit code than 0 success, the cause says whether it was one.
func endCause(x *queue.AttemptExit) accounting.EndCause {
	if x.Cause == queue.CauseExited && x.SuccessCode != 0 && x.Signal == 0 {
		switch x.Code {
		case x.SuccessCode:
			return accounting.EndedOwnSuccess
		case 0:
			return accounting.EndedOwnFailure
		}
	}
	if cause := accounting.EndCause(x.Cause) + accounting.EndedExit; cause <= accounting.EndedPrologue {
		return cause
	}
	return accounting.EndedMachine
}

// addSegments divides the wall time of an attempt at the times when it was suspended. The
// spans are of the schedd's clock, so they are cut and the last part is what remains: the
// parts add up to Wall exactly.
func addSegments(entry *accounting.AttemptEntry, a *queue.AccountedAttempt, ended int64) {
	if len(a.Suspended) == 0 || a.Started == 0 {
		return
	}
	left, at := entry.Wall, a.Started
	add := func(until int64, suspended bool) {
		part := min(max(until-at, 0)/1e6, left)
		if part > 0 {
			entry.Segments = append(entry.Segments,
				accounting.Segment{From: millis(at), Wall: part, Suspended: suspended, Held: a.Resources})
			if suspended {
				entry.Suspended += part
			}
		}
		left, at = left-part, max(at, until)
	}
	for _, s := range a.Suspended {
		add(s.From, false)
		if s.To == 0 {
			s.To = ended
		}
		add(s.To, true)
	}
	if n := len(entry.Segments); n > 0 && left > 0 && entry.Segments[n-1].Suspended == (at >= ended) {
		entry.Segments[n-1].Wall += left
		if at >= ended {
			entry.Suspended += left
		}
		return
	}
	if left > 0 {
		entry.Segments = append(entry.Segments, accounting.Segment{From: millis(at), Wall: left, Held: a.Resources})
	}
}

// maxNamedTasks bounds the tasks for which an event makes an action each. One action says
// which tasks they are where there are more.
const maxNamedTasks = 16

// addActions adds what somebody did, or what happened to a job.
func (d *Deriver) addActions(q *queue.Queue, e *queue.JobEvent) {
	if !isAction(e.Type) {
		return
	}
	for _, a := range jobActions(d.jobKey(q, e.Job), e) {
		d.add(accounting.FeedEntry{Action: &a})
	}
}

// isAction reports whether accounting stores an event as an action. It stores the
// beginning and end of attempts and of jobs otherwise. Signals and the order of jobs
// concern nobody later.
func isAction(t queue.EventType) bool {
	switch t {
	case eventlog.Held, eventlog.Released, eventlog.RemovalRequested, eventlog.Dropped, eventlog.Retried,
		eventlog.CheckpointFailed, eventlog.CheckpointBad, eventlog.Checkpointed, eventlog.Suspended,
		eventlog.Resumed, eventlog.OwnerSuspended, eventlog.OwnerResumed, eventlog.Requeued, eventlog.Altered,
		eventlog.Returned, eventlog.RunRequested, eventlog.RunDenied, eventlog.NodesReleased,
		eventlog.BecameReady, eventlog.BecameUnready, eventlog.BackoffEnded,
		eventlog.Ticked, eventlog.TickSkipped, eventlog.Revised, eventlog.UpdateChanged, eventlog.Replaced,
		eventlog.Evicted, eventlog.SurgeChanged, eventlog.ResizeRequested, eventlog.Resized,
		eventlog.ResizeRefused, eventlog.Scaled:
		return true
	}
	return false
}

func jobActions(job accounting.JobKey, e *queue.JobEvent) []accounting.JobAction {
	a := accounting.JobAction{JobKey: job, Time: millis(e.Time), Index: -1, What: actionName(e.Type),
		By: e.RequestedBy, Reason: e.Reason}
	switch e.Type {
	case eventlog.Checkpointed, eventlog.CheckpointFailed, eventlog.CheckpointBad, eventlog.OwnerSuspended,
		eventlog.OwnerResumed, eventlog.BecameReady, eventlog.BecameUnready,
		eventlog.BackoffEnded, eventlog.Evicted, eventlog.Resized, eventlog.ResizeRefused:
		a.Index = e.Index
		if e.Image != nil && a.Reason == "" {
			a.Reason = e.Image.Describe()
		}
		return []accounting.JobAction{a}
	}
	tasks := 0
	for _, r := range e.Ranges {
		tasks += r.Last - r.First + 1
	}
	if tasks > maxNamedTasks {
		var names []string
		for _, r := range e.Ranges {
			names = append(names, r.String())
		}
		text := fmt.Sprintf("%d tasks: %s", tasks, strings.Join(names, ","))
		a.Reason = strings.TrimSuffix(text[:min(len(text), 1000)]+"; "+a.Reason, "; ")
	}
	if tasks == 0 || tasks > maxNamedTasks {
		return []accounting.JobAction{a}
	}
	var all []accounting.JobAction
	for _, r := range e.Ranges {
		for i := r.First; i <= r.Last; i++ {
			a.Index = i
			all = append(all, a)
		}
	}
	return all
}

// actionName is the name of an action in reports.
func actionName(t queue.EventType) string {
	switch t {
	case eventlog.OwnerSuspended:
		return "owner-suspended"
	case eventlog.OwnerResumed:
		return "owner-resumed"
	}
	return t.String()
}
