package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// What says what happened.
type What uint8

// What can happen to jobs. The numbers stand in logs on disk: none is ever used for anything else.
const (
	Submitted        What = iota + 1 // a job came in
	Assigned                         // an attempt is recorded, on its way to a machine
	Started                          // its processes run
	Ended                            // its processes are gone, and its output is where it belongs
	Lost                             // it is gone without an exit status
	Held                             // somebody or something held tasks; what is active is to end first
	Released                         // held tasks may go on
	RemovalRequested                 // tasks are to go; what is active is to end first, the others are gone at once
	Retried                          // failed or removed tasks are to run again
	Due                              // the start time of a job has passed
	Purged                           // the job stands in the history and leaves the queue
)

var whatNames = [...]string{
	Submitted: "submitted", Assigned: "assigned", Started: "started", Ended: "ended", Lost: "lost", Held: "held", Released: "released",
	RemovalRequested: "removed", Retried: "retried", Due: "due", Purged: "purged",
}

func (w What) String() string {
	if int(w) < len(whatNames) && whatNames[w] != "" {
		return whatNames[w]
	}
	return fmt.Sprintf("what(%d)", uint8(w))
}

// Event is a fact about one job. Which fields are set depends on What.
type Event struct {
	What       What
	Time       int64  // unix nanoseconds
	Job        uint64 // sequence number
	Index      int    // Assigned, Started, Ended, Lost: the task
	Attempt    roost.Attempt
	Ranges     []Range // Held, Released, RemovalRequested, Retried: which tasks, ascending; none means all
	Node       string  // Assigned
	Address    string  // Assigned: of the node
	Claim      uint64  // Assigned: the node's number for it
	Exit       *Exit   // Ended
	By         string  // who asked; empty for Roost itself
	Reason     string
	Code       int  // Held: for programs; 0 for a user's hold
	Force      bool // RemovalRequested: without notice
	Submission *Submission
}

// Range is the task indexes First to Last, both included.
type Range struct{ First, Last int }

// Exit is how an attempt ended. Times are nanoseconds.
type Exit struct {
	Code   int32 // exit code, when Signal is 0
	Signal int32
	Core   bool
	Cause  Cause
	Reason string
	Wall   int64
	User   int64
	System int64
	MaxRSS int64 // bytes
	Output Output
}

// Output says what an attempt left behind.
type Output struct {
	Spool          string // where captured streams lie, empty when nothing was captured
	Stdout, Stderr int64  // bytes captured
	Files          int    // brought back from its scratch directory
}

// Cause says why an attempt ended. The numbers are those of the wire.
type Cause uint8

// The causes.
const (
	ByItself   Cause = iota
	ByWalltime       // it ran too long
	ByRemoval        // a hold or a removal
	ByVacating       // preempted, drained
	ByLease          // its lease ran out
	ByLaunch         // it could not be started, by the job's fault
	ByMachine        // it could not be started, by the machine's fault
)

// Success reports whether the program ended by itself with exit code 0.
func (x *Exit) Success() bool { return x.Cause == ByItself && x.Code == 0 && x.Signal == 0 }

func (x *Exit) String() string {
	switch {
	case x.Reason != "":
		return x.Reason
	case x.Signal != 0:
		return fmt.Sprintf("signal %d", x.Signal)
	}
	return fmt.Sprintf("exit code %d", x.Code)
}

// Submission is a job as it was taken in.
type Submission struct {
	Key         string // "uid:" and the client's
	Part, Parts int    // its place in the submission that had this key
	Owner       string
	UID, GID    uint32
	Ad          string
	Count       int
	Columns     []Column
	Waits       []Wait // dependencies that were open at submit
}

// Column holds one value for each task.
type Column struct {
	Name   string
	Values []string
}

// Wait is a dependency on another job of the same schedd.
type Wait struct {
	Type WaitType
	Job  uint64
}

// WaitType says what has to happen to the other job (OpenPBS qsub -W depend).
type WaitType uint8

// The types of dependency.
const (
	AfterOK    WaitType = iota + 1 // all its tasks completed with success
	AfterNotOK                     // it is final, and a task of it failed or was removed
	AfterAny                       // it is final
	After                          // a task of it has started
)

var waitNames = [...]string{AfterOK: "afterok", AfterNotOK: "afternotok", AfterAny: "afterany", After: "after"}

func (t WaitType) String() string { return waitNames[t] }

// ParseWaitType reads "afterok" and its like.
func ParseWaitType(s string) (WaitType, error) {
	for t, name := range waitNames {
		if t > 0 && name == s {
			return WaitType(t), nil
		}
	}
	return 0, fmt.Errorf("%w: %q is no type of dependency: use afterok, afternotok, afterany or after", roost.Invalid, s)
}
