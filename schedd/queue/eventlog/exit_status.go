package eventlog

import "fmt"

// exceededResources are PBS's exit statuses and names for resources of which a task used
// too much (OpenPBS: JOB_EXEC_KILL_…).
var exceededResources = map[ExitCause]struct {
	status   int
	resource string
}{
	CauseWalltime: {-29, "walltime"}, CauseCPUTime: {-28, "cput"}, CauseMemory: {-27, "mem"},
	CauseVirtualMemory: {-26, "vmem"},
}

// The exit statuses of tasks that were never begun (OpenPBS: JOB_EXEC_FAIL1 and 2).
const (
	statusNeverStarted = -1
	statusRefused      = -2
)

// ExceededResource is what the task used too much of, in PBS's words; empty for any other
// cause.
func (c ExitCause) ExceededResource() string { return exceededResources[c].resource }

// Status is PBS's Exit_status: the exit code, or 256 and more for a signal. It is below 0
// where the batch system ended the task or could not begin it.
func (x *AttemptExit) Status() int {
	if b, ok := exceededResources[x.Cause]; ok {
		return b.status
	}
	switch {
	case x.Cause == CausePrologue:
		return statusRefused
	case x.Cause == CauseLaunch:
		return statusNeverStarted
	case x.Signal != 0:
		return 256 + int(x.Signal)
	}
	return int(x.Code)
}

// Describe says in words how an attempt ended.
func (x *AttemptExit) Describe() string {
	switch {
	case x.Reason != "":
		return x.Reason
	case x.Signal != 0:
		return fmt.Sprintf("ended by signal %d", x.Signal)
	default:
		return fmt.Sprintf("exit code %d", x.Code)
	}
}
