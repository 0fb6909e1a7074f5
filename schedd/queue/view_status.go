package queue

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// statusView is what users are shown of jobs and their tasks.
type statusView struct{ *jobTable }

// JobStatus is what is told of a job, or of one task of it.
type JobStatus struct {
	Job         roost.JobID
	Name        string
	Owner       string
	UID         uint32
	Band        roost.PriorityBand
	Priority    int
	Queue       string
	Group       string
	Reservation string // the only reservation in which it may run; empty: none
	Array       bool
	OrderRank   uint64 // its place among the jobs of the schedd: the number of the job whose place it is
	OrderTime   int64  // when the job of that place was submitted, unix nanoseconds
	Submitted   int64  // unix nanoseconds; the next two 0 for not yet
	Started     int64
	Ended       int64
	// since when it could run, and was not held or made to wait since, unix nanoseconds;
	// 0: it is
	EligibleSince    int64
	WaitingSince     int64 // since when a task of it waits for nothing but a machine, likewise; 0: none does
	Waited           int64 // for how long some did before, nanoseconds
	Tasks            int
	Counts           [roost.Removed + 1]int
	Failed           int
	Resources        roost.Resources
	Request          RequestID
	Reason           string
	Locked           bool        // it is held, and only who administers may release it
	WaitsForTimeOnly bool        // blocked tasks wait for the start time, and for no other job
	Task             *TaskStatus // of the task, or of the only one, or of the one that leads the others
	RunNow           RunNowStatus
	// of machines that the job has, where one task leads the others, in the order of the
	// tasks
	Placements []TaskPlacement
	// of such a job that has given machines back: the numbers of the tasks there in the
	// gang, and what CPU time those used that have ended
	Released      []int
	ReleasedUsage eventlog.CPUUsage
	Service       *ServiceStatus // nil: it ends by itself
	Alloc         *AllocStatus   // of an alloc set, or of one alloc
	Inside        *InsideStatus  // nil: its tasks run on machines
	Flow          *FlowStatus    // nil: it is no flow
	// of gangs that are saved together, the first maxGangEpochs; of one task its gang
	Epochs []GangEpochStatus
}

// GangEpochStatus is what is told of the saved work of a gang.
type GangEpochStatus struct {
	eventlog.GangEpoch
	Origin uint64 // the epoch that the present attempts went on from; 0: from nothing, or none
	Live   int    // tasks with a present attempt
	Open   int    // tasks that are not final
	Staged int    // of these, how many have their files home for the next one
}

// maxGangEpochs bounds of how many gangs of one job this is told at once.
const maxGangEpochs = 16

// hasActive reports whether a task of a job is on a machine.
func hasActive(j *job) bool {
	for s, n := range j.counts {
		if n > 0 && roost.TaskState(s).IsActive() {
			return true
		}
	}
	return false
}

// gangEpochs tells of the saved work of the gangs of a job, or of one of them.
func gangEpochs(j *job, first, last int) (list []GangEpochStatus) {
	if !savesTogether(j) || len(j.gangs.epochs) == 0 && !hasActive(j) {
		return nil
	}
	for n := first; n <= last && len(list) < maxGangEpochs; n++ {
		s := GangEpochStatus{GangEpoch: eventlog.GangEpoch{Gang: n}}
		if g := j.gangs.epochs[n]; g != nil {
			s.GangEpoch = *g
		} else if j.gangs.idleTasks[n] == j.gangs.openTasks[n] { // it has not started
			continue
		}
		eachOfGang(j, n, func(i int) {
			s.Open += int(boolToInt(!j.state[i].IsFinal()))
			s.Staged += int(boolToInt(!j.state[i].IsFinal() && stagedImage(j, i) != nil))
			if r := j.records.Own(i); r != nil && r.Live {
				if s.Live++; r.Checkpoints != nil {
					s.Origin = r.Checkpoints.OriginEpoch
				}
			}
		})
		s.Failed = s.Failed && s.Live > 0 // else the next attempts may save one
		if s.Last > 0 || s.Live > 0 {
			list = append(list, s)
		}
	}
	return list
}

// TaskPlacement is what a task holds, or is to hold, of a node.
type TaskPlacement struct {
	Node      string // empty: not known yet
	Placement string // see JobEvent.Placement
	Resources roost.Resources
}

// TaskStatus is what is told of one task.
type TaskStatus struct {
	Index       int
	UserIndex   int // the index that users know it by
	State       roost.TaskState
	Attempt     roost.AttemptNumber
	Node        string
	Placement   string // see JobEvent.Placement
	Started     int64
	Ended       int64
	Exit        *eventlog.AttemptExit
	Reason      string
	SuspendedBy string // Suspended: "owner" of its machine, "user", or both with a comma between them
	HeldBy      string // Held: "user", "operator" (somebody else than its owner), or "roost"

	ImageCount     int                // good checkpoints that are kept
	LastCheckpoint int64              // when the last of them was taken, unix nanoseconds
	EarlierUsage   eventlog.CPUUsage  // of earlier attempts, that the last one went on from
	Service        *TaskServiceStatus // nil: not of a service, or it never had an attempt
	Resize         string             // what becomes of the size of its live attempt; empty: nothing
}

// JobOwner returns the user who submitted a job; empty for a job that is not here.
func (q statusView) JobOwner(seq uint64) string {
	if j := q.jobs[seq]; j != nil {
		return j.submission.owner
	}
	return ""
}

// Status tells how a job stands.
func (q statusView) Status(seq uint64) (JobStatus, bool) {
	j := q.jobs[seq]
	if j == nil {
		return JobStatus{}, false
	}
	return q.status(j), true
}

func (q statusView) status(j *job) JobStatus {
	s := JobStatus{
		Job: j.id(q.host), Name: j.texts.name(), Owner: j.submission.owner, UID: j.submission.uid, Band: j.spec.Band,
		Priority: j.spec.Priority,
		Queue:    j.spec.Queue, Group: j.spec.Group, Array: j.spec.Array, WaitsForTimeOnly: j.waitsForTimeOnly(),
		Locked: j.firstHeldLocked(), Submitted: j.submitted, OrderRank: j.orderRank, OrderTime: j.orderTime,
		Reservation: j.spec.Reservation,
		Resources:   j.classes[0].request.Resources, Request: j.waitingRequest().ID,
		EligibleSince: j.eligible.Since, WaitingSince: j.eligible.WaitingSince, Waited: j.eligible.Waited,
	}
	s.Tasks, s.Counts, s.Failed = j.userCounts()
	s.RunNow, s.Service, s.Flow = j.runNowStatus(), serviceTasks{j}.status(), q.flowStatus(j)
	q.addAllocs(&s, j, -1)
	s.Epochs = gangEpochs(j, 0, len(j.gangs.idleTasks)-1)
	if j.spec.MPIGang && j.spec.GangSize == len(j.state) {
		q.mpiJobStatus(j, &s)
		return s
	}
	if len(j.state) == 1 {
		t := q.task(j, 0)
		s.Task, s.Started, s.Ended, s.Reason = &t, t.Started, t.Ended, t.Reason
		return s
	}
	s.Started, s.Ended, s.Reason = j.startAndEnd()
	if i := indexOfState(j.state, roost.Idle); s.Reason == "" && i >= 0 && j.spec.Inside.Alloc != 0 {
		s.Reason = q.insideReason(j, i)
	}
	if s.Reason == "" && j.spec.IsAlloc && j.counts[roost.Running] > 0 {
		s.Reason = fmt.Sprintf("%d of %d held open", j.counts[roost.Running], len(j.state))
	}
	return s
}

// waitingRequest is the request of the ready tasks of a job. With a checkpoint it is
// another one than at first.
func (j *job) waitingRequest() *Request {
	for _, c := range j.classes {
		if c.count > 0 {
			return c.request
		}
	}
	return j.classes[0].request
}

// startAndEnd is when the first task of a job started and the last ended, and the first
// reason to show.
func (j *job) startAndEnd() (started, ended int64, reason string) {
	if j.isFinal() {
		ended = j.lastEnded
	}
	switch {
	case j.counts[roost.Held] == 0 && j.spec.Service != nil && !j.isBlocked() && !j.isFinal():
		reason = serviceTasks{j}.reason() // those that were removed are not missed
	case j.counts[roost.Held]+j.counts[roost.Removed] > 0:
		reason = j.stateReason(indexOfState(j.state, roost.Held, roost.Removed))
	case j.failed > 0:
		tasks, _, failed := j.userCounts()
		reason = fmt.Sprintf("%d of %d tasks failed", failed, tasks)
	case j.spec.Service != nil && !j.isBlocked():
		reason = serviceTasks{j}.reason()
	case j.counts[roost.Blocked] > 0:
		reason = blockedReason(j)
	}
	return j.firstStarted, ended, reason
}

// stateReason explains the state of one task.
func (j *job) stateReason(i int) (why string) {
	r := j.records.Get(i)
	if r != nil {
		why = recordReason(r, j.state[i])
	}
	switch {
	case j.state[i] == roost.Blocked && waitsForRestart(j, i):
		return restartReason(r)
	case j.state[i] == roost.Blocked:
		return blockedReason(j)
	case j.state[i] == roost.Held && why == "":
		return "held when it was submitted"
	case j.state[i].IsActive() && j.evictionWaits[i] != "":
		return j.evictionWaits[i]
	case j.state[i].IsActive() && r.Resize != nil && why == "":
		return resizeReason(j, i, r.Resize)
	case j.state[i].IsActive() && r.Resize != nil:
		return why + "; " + resizeReason(j, i, r.Resize)
	}
	return why
}

// WaitingIndexes lists the indexes of the tasks that wait to be started, as users know
// them: "3-9,12". It is empty when there are none. Of a list of more than maxWritten
// parts the rest is left out.
func (q statusView) WaitingIndexes(seq uint64) string {
	j := q.jobs[seq]
	if j == nil {
		return ""
	}
	waits := func(i int) bool {
		s := j.state[i]
		return s == roost.Idle || s == roost.Held || s == roost.Blocked
	}
	var parts []string
	step := j.tasksPerIndex()
	for first := 0; first < len(j.state) && len(parts) < maxWritten; first += step {
		if !waits(first) {
			continue
		}
		last := first
		for last+step < len(j.state) && waits(last+step) {
			last += step
		}
		parts = append(parts, j.indexText(first, last))
		first = last
	}
	return strings.Join(parts, ",")
}

// TaskStatus tells how one task stands, within its job's status.
func (q statusView) TaskStatus(t roost.TaskID) (JobStatus, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return JobStatus{}, false
	}
	return q.taskStatus(j, q.status(j), t.Index), true
}

// taskStatus makes of the status of a job that of one of its tasks.
func (q statusView) taskStatus(j *job, s JobStatus, i int) JobStatus {
	if j.tasksPerIndex() > 1 {
		return q.mpiTaskStatus(j, s, j.primaryOf(i))
	}
	one, c := q.task(j, i), j.class(i)
	s.Task, s.Started, s.Ended, s.Reason = &one, one.Started, one.Ended, one.Reason
	s.Locked = one.State == roost.Held && j.isLocked(i)
	s.Resources, s.Request, s.Placements = c.request.Resources, c.request.ID, nil
	q.addAllocs(&s, j, i)
	s.Epochs = gangEpochs(j, gangOf(j, i), gangOf(j, i))
	return s
}

// EachTask calls f with the status of each task in a target, until f returns false.
func (q statusView) EachTask(t TaskSelector, f func(JobStatus) bool) { q.EachTaskIn(t, nil, false, f) }

// EachTaskIn is EachTask for the tasks that are in one of some states, or with failed
// have completed without success. Both empty means all.
func (q statusView) EachTaskIn(t TaskSelector, states []roost.TaskState, failed bool, f func(JobStatus) bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return
	}
	more, whole := true, q.status(j) // once: it may look at every task
	t.eachIndex(len(j.state), func(i int) {
		if j.tasksPerIndex() > 1 && j.isSecondary(i) {
			return
		}
		all, s := len(states) == 0 && !failed, j.userState(i)
		if more && (all || slices.Contains(states, s.state) || failed && s.failed) {
			more = f(q.taskStatus(j, whole, i))
		}
	})
}

// NextTaskIn returns where a walk through the tasks that EachTaskIn lists goes on. It is
// an index from first on, and none between them is listed. It returns false after the
// last.
func (q statusView) NextTaskIn(t TaskSelector, first int, states []roost.TaskState, failed bool) (int, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return 0, false
	}
	first, ok := t.nextIndex(first, len(j.state))
	// a task of a gang is listed in a state that may not be its own
	if !ok || len(states) == 0 && !failed || j.tasksPerIndex() > 1 {
		return first, ok
	}
	if failed {
		states = append(slices.Clone(states), roost.Completed)
	}
	states = slices.DeleteFunc(slices.Clone(states), func(s roost.TaskState) bool { return j.counts[s] == 0 })
	i := indexOfState(j.state[first:], states...)
	if i < 0 {
		return 0, false
	}
	return t.nextIndex(first+i, len(j.state))
}

// indexOfState returns the index of the first task in one of some states, or -1. Arrays
// have up to a million tasks, and the list of one task of them asks this. bytes.IndexByte
// compares many bytes at once; slices.Index takes twenty times as long.
func indexOfState(all []roost.TaskState, states ...roost.TaskState) int {
	text := unsafe.Slice((*byte)(unsafe.SliceData(all)), len(all))
	first := -1
	for _, state := range states {
		if i := bytes.IndexByte(text, byte(state)); i >= 0 {
			text, first = text[:i], i
		}
	}
	return first
}

func (q statusView) task(j *job, i int) TaskStatus {
	t := TaskStatus{Index: i, UserIndex: q.UserIndex(j.id(q.host).Task(i)), State: j.state[i]}
	if r := j.records.Get(i); r != nil {
		t.Placement, t.Service, t.Resize = r.Placement, taskServiceStatus(r), resizeReason(j, i, r.Resize)
		t.Attempt, t.Node, t.Started, t.Exit = r.Attempt, r.Node, r.Started, r.Exit
		if t.State.IsFinal() {
			t.Ended = r.Ended
		}
		if m := r.NewestImage(); m != nil {
			t.ImageCount, t.LastCheckpoint = len(r.Checkpoints.Images), m.Time
		}
		if r.Checkpoints != nil {
			t.EarlierUsage = r.Checkpoints.OriginUsage
		}
	}
	t.Reason, t.SuspendedBy, t.HeldBy = j.stateReason(i), j.suspendedBy(i), heldBy(j, i)
	if runsFlow(j) {
		t.State = roost.Running
	}
	if t.Reason == "" && t.State == roost.Idle && j.spec.Inside.Alloc != 0 {
		t.Reason = q.insideReason(j, i)
	} else if t.Reason == "" && j.spec.IsAlloc && t.State == roost.Running {
		t.Reason = q.openReason(j, i)
	}
	return t
}

// recordReason is the one line that explains a state.
func recordReason(r *eventlog.TaskRecord, s roost.TaskState) string {
	switch {
	case s == roost.Held:
		return r.HoldReason
	case s == roost.Removed:
		return r.Reason
	case s.IsActive() && r.RemoveWanted:
		return "being removed: " + r.Reason
	case s.IsActive() && r.Service != nil && !r.RemoveWanted && !r.HoldWanted && s != roost.Suspended:
		return healthReason(r.Service)
	case s.IsActive() && r.HoldWanted:
		return "being held: " + r.HoldReason
	case s == roost.Suspended && r.OwnerReason != "" && r.AlsoByUser:
		return r.OwnerReason + "; and suspended by a user"
	case s == roost.Suspended && r.OwnerReason != "":
		return r.OwnerReason
	case s == roost.Suspended:
		return "suspended by a user"
	case s == roost.Completed && r.Exit != nil && !r.Exit.IsSuccess():
		if r.NewestImage() != nil {
			return r.Exit.Describe() + "; its last checkpoint is kept for a retry"
		}
		return r.Exit.Describe()
	}
	return ""
}

// FailedTasks calls f with tasks of a job that have failed, at most limit of them.
func (q statusView) FailedTasks(seq uint64, limit int, f func(JobStatus)) {
	j := q.jobs[seq]
	if j == nil || j.failed == 0 {
		return
	}
	for i := 0; i < len(j.state); i += j.tasksPerIndex() {
		if j.userState(i).failed {
			st, _ := q.TaskStatus(j.id(q.host).Task(i))
			f(st)
			if limit--; limit == 0 {
				return
			}
		}
	}
}
