package queue

// Status is PBS's Exit_status: the exit code, 256 and more for a signal, or below 0 where the batch system ended the task or could not begin it (OpenPBS:
// JOB_EXEC_…). The command qstat has the same table, of the wire's causes.
func (x *Exit) Status() int {
	switch x.Cause {
	case ByWalltime:
		return -29
	case ByCPUTime:
		return -28
	case ByMemory:
		return -27
	case ByVirtual:
		return -26
	case ByRefusal:
		return -2
	case ByLaunch:
		return -1
	}
	if x.Signal != 0 {
		return 256 + int(x.Signal)
	}
	return int(x.Code)
}
