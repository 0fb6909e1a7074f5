package roost

import "fmt"

// TaskState is the state of a task; the comment of package schedd/queue draws the state
// machine.
type TaskState uint8

// The states of a task. Completed and Removed are final.
const (
	Blocked   TaskState = iota // waits for other jobs or for its start time
	Held                       // must not start, because a person or its own failures held it
	Idle                       // ready; waits for a machine
	Starting                   // an attempt is recorded and has been sent to a machine
	Running                    // its processes run
	Suspended                  // its processes are frozen
	Exiting                    // its processes have ended; its output is being fetched
	Completed                  // ended by itself, with an exit status
	Removed                    // taken out of the queue before it completed
)

var taskStateNames = [...]string{
	Blocked: "blocked", Held: "held", Idle: "idle", Starting: "starting", Running: "running",
	Suspended: "suspended", Exiting: "exiting", Completed: "completed", Removed: "removed",
}

func (s TaskState) String() string {
	if int(s) < len(taskStateNames) {
		return taskStateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// IsFinal reports whether a task in this state will never run again.
func (s TaskState) IsFinal() bool { return s == Completed || s == Removed }

// IsActive reports whether an attempt of the task is live, or may be.
func (s TaskState) IsActive() bool { return s >= Starting && s <= Exiting }

// ParseTaskState reads the name of a state.
func ParseTaskState(name string) (TaskState, error) {
	for s, n := range taskStateNames {
		if n == name {
			return TaskState(s), nil
		}
	}
	return 0, fmt.Errorf("%q is not a task state", name)
}

// TaskStateNames lists the states in the order of a task's life.
func TaskStateNames() []string { return append([]string(nil), taskStateNames[:]...) }

// PBSLetter returns the one-letter state of qstat. The letters are those of OpenPBS: H
// held or blocked, Q, R, S, E, F. A blocked task is H, like an OpenPBS job with unmet
// dependencies.
func (s TaskState) PBSLetter() byte { return "HHQRRSEFF"[s] }
