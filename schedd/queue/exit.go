package queue

// bounds are PBS's exit statuses of tasks that used more of something than they may (OpenPBS: JOB_EXEC_KILL_…), with what it calls that.
var bounds = map[Cause]struct {
	status   int
	resource string
}{
	ByWalltime: {-29, "walltime"}, ByCPUTime: {-28, "cput"}, ByMemory: {-27, "mem"}, ByVirtual: {-26, "vmem"},
}

// The exit statuses of tasks that were never begun (OpenPBS: JOB_EXEC_FAIL1 and 2).
const (
	neverBegun = -1
	turnedDown = -2
)

// Resource is what the task used too much of, in PBS's words; empty for any other cause.
func (c Cause) Resource() string { return bounds[c].resource }

// Status is PBS's Exit_status: the exit code, 256 and more for a signal, or below 0 where the batch system ended the task or could not begin it.
func (x *Exit) Status() int {
	if b, ok := bounds[x.Cause]; ok {
		return b.status
	}
	switch {
	case x.Cause == ByRefusal:
		return turnedDown
	case x.Cause == ByLaunch:
		return neverBegun
	case x.Signal != 0:
		return 256 + int(x.Signal)
	}
	return int(x.Code)
}
