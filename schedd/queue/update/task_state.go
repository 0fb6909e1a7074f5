package update

import "time"

// Condition is what the queue knows of the present attempt of a task.
type Condition uint8

// The conditions.
const (
	Down     Condition = iota // it has no attempt: it waits for a machine or for its back-off
	Starting                  // its attempt was assigned, and nothing is known of its checks
	Unready                   // a check has failed
	Ready                     // it serves
	Leaving                   // it is being stopped in order
	Lost                      // its machine is silent
)

// TaskFact is what the queue knows of one task. Times are unix nanoseconds.
type TaskFact struct {
	// of its attempt; of the next one, when it has none, or one that is leaving or lost
	Revision  uint32
	Condition Condition
	Since     int64 // since when it is ready, or since when it is not
	Began     int64 // when its attempt was begun; 0: it has none
	// Planned: a planned cause has taken it down, and it was not ready since
	Planned bool
	// WasReady: some attempt of it was ready; before that it is not missed
	WasReady bool
	Exits    int // attempts of its revision that ended by themselves since it was given that
	// Resizable: its attempt can get the target by another size, where it is; ResizeAt:
	// not before
	Resizable bool
	ResizeAt  int64
	// ResizeAsked: when its machine was asked for another size, and has not answered; 0:
	// it was not
	ResizeAsked int64
	// Untouched: when the tasks began to go back, it was of that revision already. How it
	// is then is not the update's doing.
	Untouched bool
	// Absent: it is not to run, because it was removed or somebody holds it
	Absent bool
}

// TaskState is how far a task has come in an update.
type TaskState uint8

// The states of a task.
const (
	TaskOld TaskState = iota
	TaskStopping
	TaskWaiting // it is of the wanted revision, and waits for a machine
	TaskStarting
	TaskUnready
	TaskSettling // ready, and not for long enough
	TaskNew
	TaskFailed
	TaskExcluded // the update does not concern it
	TaskResizing // its attempt becomes larger or smaller
)

var taskStateNames = [...]string{TaskOld: "old", TaskStopping: "stopping", TaskWaiting: "waiting",
	TaskStarting: "starting", TaskUnready: "unready", TaskSettling: "settling", TaskNew: "new", TaskFailed: "failed",
	TaskExcluded: "excluded", TaskResizing: "resizing"}

// String returns the word that users read.
func (s TaskState) String() string { return taskStateNames[s] }

// inProgress reports whether a task is being replaced.
func (s TaskState) inProgress() bool {
	return s >= TaskStopping && s <= TaskSettling || s == TaskResizing
}

// resizeEnds is when a machine must have answered that was asked for another size. After
// that the task is started again, as if the machine had refused.
func (f *TaskFact) resizeEnds(p *Policy) int64 { return f.ResizeAsked + int64(p.ReadyWithin) }

// readyAt is when a task that serves has proved itself.
func (f *TaskFact) readyAt(settling time.Duration) int64 { return f.Since + int64(settling) }

// TaskState returns how far a task of the update has come.
func (u *Update) TaskState(i int, f *TaskFact, p *Policy, now int64) TaskState {
	switch {
	case !u.includes(i):
		return TaskExcluded
	case f.ResizeAsked > 0 && now < f.resizeEnds(p):
		return TaskResizing
	case f.Revision != u.Target():
		return TaskOld
	case f.Condition == Ready && now >= f.readyAt(p.Settling), f.Absent, u.State.isUndo() && f.Untouched:
		return TaskNew
	case u.hasFailed(i):
		return TaskFailed
	}
	switch f.Condition {
	case Starting:
		return TaskStarting
	case Unready, Lost:
		return TaskUnready
	case Ready:
		return TaskSettling
	case Leaving:
		return TaskStopping
	case Down:
	}
	return TaskWaiting
}

// failsNow reports whether a task of the wanted revision does not come up. If it still
// may, again is when to ask anew.
func (f *TaskFact) failsNow(p *Policy, now int64) (fails bool, again int64) {
	if f.Exits > 0 {
		return true, 0
	}
	if f.Began > 0 && (f.Condition == Starting || f.Condition == Unready) {
		at := f.Began + int64(p.ReadyWithin)
		return now >= at, at
	}
	return false, 0
}
