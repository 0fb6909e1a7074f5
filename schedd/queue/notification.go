package queue

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// NotificationEvent is what somebody is told of.
type NotificationEvent uint8

// The occasions (POSIX XCU qsub, -m): the letters b, e and a.
const (
	BeginEvent NotificationEvent = iota + 1
	EndEvent
	AbortEvent // by the batch system, or by somebody else than its owner
)

func (o NotificationEvent) String() string {
	return [...]string{BeginEvent: "begun", EndEvent: "ended", AbortEvent: "aborted"}[o]
}

// JobNotification is what somebody asked to be told of a job, or of a task of an array.
type JobNotification struct {
	What     NotificationEvent
	Time     int64 // unix nanoseconds
	ID       string
	Name     string
	Queue    string
	Owner    string
	UID, GID uint32
	Users    string // whom to tell, with commas between; empty: the owner
	Node     string
	Reason   string
	Exit     *eventlog.AttemptExit // nil: there was none
	Tasks    int                   // of an array that is told of as a whole, so the next
	Failed   int
	Removed  int
}

// Notification is what is to be told of an event that has just been applied; false for
// nothing. An array without -m j is told of as a whole: when its first task starts, and
// when the last has ended.
func (q *Queue) Notification(e eventlog.JobEvent) (n JobNotification, ok bool) {
	j := q.jobs[e.Job]
	if j == nil || j.spec.Mail == nil {
		return n, false
	}
	m, array := j.spec.Mail, j.spec.Array || len(j.state) > 1 && !j.spec.MPIGang
	whole := array && !m.PerTask
	n = JobNotification{
		Time: e.Time, ID: j.id(q.host).String(), Name: j.texts.name(),
		Queue: cmp.Or(j.spec.Queue, roost.DefaultQueueName),
		Owner: j.submission.owner, UID: j.submission.uid, GID: j.submission.gid, Users: m.Recipients,
		Reason: e.Reason,
	}
	if array {
		number, host, _ := strings.Cut(n.ID, ".")
		n.ID = number + "[]." + host
	}
	one := func() {
		if array {
			n.ID = q.TaskName(j.id(q.host).Task(e.Index))
		}
		if r := j.records.Get(e.Index); r != nil {
			n.Node = r.Node
		}
	}
	if (e.Type == eventlog.Started || e.Type == eventlog.Ended) && j.isSecondary(e.Index) && !whole {
		return n, false // it has no program
	}
	switch e.Type {
	case eventlog.Started:
		if n.What = BeginEvent; whole {
			return n, m.OnBegin && j.firstStarted == e.Time && j.lastEnded == 0
		}
		one()
		return n, m.OnBegin
	case eventlog.Ended:
		if whole {
			return q.arrayNotification(j, n)
		}
		one()
		n.Exit, n.Reason = e.Exit, e.Exit.Reason
		return n, n.endEvent(m, e.Exit, j.state[e.Index])
	case eventlog.RemovalRequested, eventlog.Dropped:
		if whole && j.isFinal() {
			return q.arrayNotification(j, n)
		}
		if n.What = AbortEvent; len(e.Ranges) > 0 && !whole {
			n.ID = q.TaskNames(e.Job).Tasks(j.id(q.host), e.Ranges)
		}
		if e.RequestedBy != "" {
			n.Reason = fmt.Sprintf("deleted by %s", e.RequestedBy)
		}
		return n, m.OnAbort && !whole && e.RequestedBy != j.submission.owner
	}
	return n, false
}

// endEvent reports whether the end of a task is to be told, and as what.
func (n *JobNotification) endEvent(m *jobad.MailOptions, x *eventlog.AttemptExit, state roost.TaskState) bool {
	switch {
	case x.Cause == eventlog.CauseRemoval: // that was told when it was asked for
		return false
	case state == roost.Completed && x.Cause == eventlog.CauseExited:
		n.What = EndEvent
		return m.OnEnd
	case state == roost.Completed || state == roost.Held:
		n.What = AbortEvent
		return m.OnAbort || m.OnEnd && state == roost.Completed
	}
	return false // it is run again
}

// arrayNotification is the notice of a whole array that has ended.
func (q *Queue) arrayNotification(j *job, n JobNotification) (JobNotification, bool) {
	if !j.isFinal() {
		return n, false
	}
	tasks, counts, failed := j.userCounts()
	n.What, n.Reason, n.Tasks, n.Failed, n.Removed = EndEvent, "", tasks, failed, counts[roost.Removed]
	if n.Failed+n.Removed > 0 {
		n.What = AbortEvent
	}
	return n, j.spec.Mail.OnEnd || n.What == AbortEvent && j.spec.Mail.OnAbort
}
