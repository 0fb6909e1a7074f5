package step

// TaskGroup is the tasks of a step on one machine, and what they have in common.
type TaskGroup struct {
	Directory   string   // working directory; empty: that of the caller
	Environment []string // "NAME=value"
	Umask       int      // -1: unchanged
	Tasks       []Task
	// The ranks of an MPI program exchange keys by PMI-1 in a space of this name; empty:
	// they do not.
	KeySpace   string
	Size       int  // tasks of the whole step
	Machines   int  // machines of the whole step
	InputToAll bool // standard input goes to all tasks; otherwise to those that FrameInput names
}

// Task is one task of a step.
type Task struct {
	Number      int      // in the step, from 0
	Command     []string // program and arguments
	Environment []string // besides that of the group
	Input       string   // file; empty: what comes in frames
	Output      string   // file; empty: frames
	Error       string   // file; empty: frames; the same as Output: one file for both
	Append      bool     // to these files
}

// TaskExit is how a task has ended.
type TaskExit struct {
	Code    int    // exit code, when Signal is 0
	Signal  int    // that has killed it
	Core    bool   // it has left a core file
	Problem string // what else has ended it; Code is 1 then
}

// TaskEnd is how a task has ended, and what it used.
type TaskEnd struct {
	TaskExit
	TaskUsage
}

// TaskUsage is what a task and the processes that it waited for used.
type TaskUsage struct {
	UserCPU   int64 // nanoseconds
	SystemCPU int64
	MaxRSS    int64 // bytes, of its largest process
}

// Status is the exit status of a task as a shell has it: 128 and the number for a signal.
func (e TaskExit) Status() int {
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Code
}
