package queue

import (
	"fmt"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// jobWaits is what a job waits for beside machines: other jobs, and its start time.
type jobWaits struct {
	dependencies []eventlog.JobDependency // not met yet
	// jobs that are to be submitted yet: that come before this one, and that start with
	// it
	expectedBefore, expectedSync int
	runOneSet                    []uint64 // jobs of which one is run, if this one is not
	runOneStarted                bool     // one of them has begun
	// a task of it was removed while it was held or waited for something else than a
	// machine
	removedUnstarted bool
	startTimeReached bool // its start time has come
	isFlow           bool // it runs nothing itself
}

// isBlocked reports whether the job waits for something else than a machine. The task of
// a flow always does.
func (j *jobWaits) isBlocked() bool { return j.isFlow || j.isWaiting() }

// isWaiting reports whether the job waits for other jobs or for its time.
func (j *jobWaits) isWaiting() bool {
	return len(j.dependencies) > 0 || j.expectedBefore > 0 || j.expectedSync > 0 || j.runOneStarted ||
		!j.startTimeReached
}

// waitsForTimeOnly reports whether the job waits for its start time, and for no other
// job.
func (j *jobWaits) waitsForTimeOnly() bool {
	return !j.startTimeReached && len(j.dependencies) == 0 && j.expectedBefore == 0 && j.expectedSync == 0 &&
		!j.runOneStarted
}

// blockedReason says what a blocked job waits for.
func blockedReason(j *job) string {
	if j.schedule != nil {
		return j.schedule.waitReason(j)
	}
	if j.flow != nil && !j.isWaiting() {
		return j.flow.reason()
	}
	return j.jobWaits.blockedReason()
}

// blockedReason says what a blocked job without a schedule waits for.
func (j *jobWaits) blockedReason() string {
	switch {
	case len(j.dependencies) > 1:
		return fmt.Sprintf("waits: %v job %d, and %d more", j.dependencies[0].Type, j.dependencies[0].Job,
			len(j.dependencies)-1)
	case len(j.dependencies) == 1:
		return fmt.Sprintf("waits: %v job %d", j.dependencies[0].Type, j.dependencies[0].Job)
	case j.expectedBefore > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to come before it", j.expectedBefore)
	case j.expectedSync > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to start with it", j.expectedSync)
	case j.runOneStarted:
		return fmt.Sprintf("waits: only one of it and job %d is to run", j.runOneSet[0])
	}
	return "waits for its start time"
}
