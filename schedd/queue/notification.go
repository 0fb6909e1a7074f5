package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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

// UserLogEntry is what the user log of a job is to say of an event.
type UserLogEntry struct {
	Path     string // absolute
	UID, GID uint32
	Job      roost.JobID
	FlowNode string // that the job runs; empty: none
	Time     int64  // unix nanoseconds
	// Submitted, Started, Ended, Held, Released, RemovalRequested, Suspended or Resumed
	Type  eventlog.EventType
	Tasks []UserLogTask
	Lines []string // of the jobstate log of the flow Job, in the place of Tasks
}

// UserLogTask is a task in such an event.
type UserLogTask struct {
	Index  int
	State  roost.TaskState       // afterwards
	Node   string                // of its attempt
	Exit   *eventlog.AttemptExit // nil: not known
	Reason string
	// Ended: that its processes run was never recorded, as a crash came in between
	Unstarted bool
}

// UserLogOf returns what the user log of a job is to say of an event that has just been
// applied. It is false for a job without one, and for other events.
func UserLogOf(q *Queue, e *eventlog.JobEvent) (entry UserLogEntry, ok bool) {
	j := q.jobs[e.Job]
	if j == nil || !hasUserLog(q, j) {
		return entry, false
	}
	entry = userLogEntry(q, j, e)
	entry.addEventTasks(j, e)
	return entry, len(entry.Tasks) > 0
}

// addEventTasks adds the tasks of which the user log is to say something, after an event.
func (l *UserLogEntry) addEventTasks(j *job, e *eventlog.JobEvent) {
	switch e.Type {
	case eventlog.Submitted:
		l.addTasks(j, nil, func(i int) bool { return true })
	case eventlog.Started, eventlog.Ended, eventlog.Lost:
		l.addTasks(j, []eventlog.IndexRange{{First: e.Index, Last: e.Index}}, func(int) bool { return true })
	case eventlog.Held:
		l.addTasks(j, e.Ranges, func(i int) bool { return j.state[i] == roost.Held })
	case eventlog.Released:
		l.addTasks(j, e.Ranges, func(i int) bool { return !j.state[i].IsFinal() && !j.state[i].IsActive() })
	case eventlog.RemovalRequested, eventlog.Dropped:
		l.addTasks(j, e.Ranges, func(i int) bool { return j.state[i] == roost.Removed })
	case eventlog.Suspended, eventlog.Resumed:
		l.addTasks(j, e.Ranges, func(i int) bool { return j.state[i].IsActive() })
	case eventlog.OwnerSuspended, eventlog.OwnerResumed:
		l.addTasks(j, []eventlog.IndexRange{{First: e.Index, Last: e.Index}}, func(int) bool { return true })
	}
}

// hasUserLog reports whether a job has a user log on this host. The file of a job of the
// cell's queue is at its submit node.
func hasUserLog(q *Queue, j *job) bool { return j.spec.UserLog && originOf(j, q.host) == "" }

// userLogEntry returns the entry of an event without its tasks.
func userLogEntry(q *Queue, j *job, e *eventlog.JobEvent) UserLogEntry {
	entry := UserLogEntry{UID: j.submission.uid, GID: j.submission.gid, Job: j.id(q.host), Time: e.Time,
		Type: userLogType(e.Type)}
	if m, err := q.newSubstituter(j, roost.AttemptID{Task: j.id(q.host).Task(0)}); err == nil {
		entry.Path = m.Text(roost.AttrUserLog)
		entry.FlowNode, _ = m.Ad.Str(roost.AttrFlowNode)
	}
	return entry
}

// userLogType is the kind of event under which the user log has another one.
func userLogType(t eventlog.EventType) eventlog.EventType {
	switch t {
	case eventlog.Lost:
		return eventlog.Ended
	case eventlog.Dropped:
		return eventlog.RemovalRequested
	case eventlog.OwnerSuspended:
		return eventlog.Suspended
	case eventlog.OwnerResumed:
		return eventlog.Resumed
	}
	return t
}

// addTasks adds the tasks of ranges, of none all, that an event concerns.
func (l *UserLogEntry) addTasks(j *job, ranges []eventlog.IndexRange, concerns func(i int) bool) {
	if len(ranges) == 0 {
		ranges = []eventlog.IndexRange{{First: 0, Last: len(j.state) - 1}}
	}
	for _, span := range ranges {
		for i := span.First; i <= min(span.Last, len(j.state)-1); i++ {
			if !concerns(i) {
				continue
			}
			t := UserLogTask{Index: i, State: j.state[i]}
			if r := j.records.Get(i); r != nil {
				t.Node, t.Exit, t.Reason = r.Node, r.Exit, recordReason(r, j.state[i])
				t.Unstarted = l.Type == eventlog.Ended && r.Started == 0
			}
			l.Tasks = append(l.Tasks, t)
		}
	}
}

// UserLogJobs lists the jobs that have a user log.
func UserLogJobs(q *Queue) (seqs []uint64) {
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		if hasUserLog(q, q.jobs[seq]) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// ReplayUserLog calls f with what the user log of a job was to say of its events. These
// are from the log of the queue. In which state an attempt left its task is known of
// the last one.
func ReplayUserLog(q *Queue, seq uint64, events []eventlog.JobEvent, f func(UserLogEntry)) {
	j := q.jobs[seq]
	if j == nil {
		return
	}
	nodes, last, active, started := map[int]string{}, map[int]int{}, map[int]bool{}, map[int]bool{}
	for k := range events {
		if t := events[k].Type; t == eventlog.Ended || t == eventlog.Lost {
			last[events[k].Index] = k
		}
	}
	for k := range events {
		e := &events[k]
		entry := userLogEntry(q, j, e)
		one := []eventlog.IndexRange{{First: e.Index, Last: e.Index}}
		all := func(int) bool { return true }
		switch entry.Type {
		case eventlog.Assigned:
			nodes[e.Index], active[e.Index], started[e.Index] = e.Node, true, false
		case eventlog.Submitted:
			entry.addTasks(j, nil, all)
		case eventlog.Held, eventlog.Released: // of a task that runs its end says that
			entry.addTasks(j, e.Ranges, func(i int) bool { return !active[i] })
		case eventlog.Started:
			started[e.Index] = true
			entry.addTasks(j, one, all)
		case eventlog.Ended:
			delete(active, e.Index)
			entry.addTasks(j, one, all)
		case eventlog.RemovalRequested:
			entry.addTasks(j, e.Ranges, func(i int) bool {
				_, ran := last[i]
				return j.state[i] == roost.Removed && !ran
			})
		}
		for i := range entry.Tasks {
			t := &entry.Tasks[i]
			if t.Node = nodes[t.Index]; entry.Type == eventlog.Ended {
				t.Unstarted = !started[t.Index]
				if t.Exit = e.Exit; last[t.Index] != k {
					t.State = roost.Idle
				}
			}
			if e.Reason != "" {
				t.Reason = e.Reason
			}
		}
		if len(entry.Tasks) > 0 {
			f(entry)
		}
	}
}
