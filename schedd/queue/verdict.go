package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// maxSpoiled is after how many attempts in a row that a machine spoiled before the program began a task is held.
const maxSpoiled = 5

// Codes of holds that nobody asked for.
const (
	HoldLaunch   = 1 // it cannot be started
	HoldMachines = 2 // too many machines failed it
	HoldNotRerun = 3 // its attempt was cut short, and the job may not run twice
	HoldOutput   = 4 // its output could not be stored
	HoldMaterial = 5 // its program could not be made out of the ad
)

// verdict is what becomes of a task whose attempt has ended.
type verdict struct {
	state   roost.TaskState
	reason  string
	code    int
	own     bool // it counts as a failure of the job's own doing
	machine bool // it counts as one of the machine's
}

// judgeEnd judges an exit. What was wished of the task decides wherever the attempt did not complete by itself.
func judgeEnd(j *job, r *record, x *Exit) verdict {
	if x.Success() {
		return verdict{state: roost.Completed}
	}
	if r.want == roost.Removed || r.want == roost.Held {
		return verdict{state: r.want}
	}
	switch x.Cause {
	case ByItself, ByWalltime:
		if int(r.own) < j.plan.retries {
			return verdict{state: roost.Idle, own: true, reason: fmt.Sprintf("attempt %d ended with %v; it is tried again", r.attempt, x)}
		}
		return verdict{state: roost.Completed, own: true, reason: x.Reason}
	case ByRemoval: // the wish was taken back meanwhile
		return verdict{state: roost.Idle}
	case ByLaunch:
		return verdict{state: roost.Held, reason: "it could not be started: " + x.Reason, code: HoldLaunch}
	}
	return spoiled(j, r, x.Reason, x.Cause == ByMachine || x.Cause == ByLease && r.started == 0)
}

// judgeLoss judges an attempt that is gone without an exit.
func judgeLoss(j *job, r *record, reason string) verdict {
	if r.want == roost.Removed || r.want == roost.Held {
		return verdict{state: r.want}
	}
	return spoiled(j, r, reason, r.started == 0)
}

// spoiled judges an attempt that was cut short by no fault of the job.
func spoiled(j *job, r *record, reason string, machine bool) verdict {
	switch {
	case !j.plan.rerunnable:
		return verdict{state: roost.Held, machine: machine, code: HoldNotRerun, reason: "its attempt was cut short, and it may not run twice: " + reason}
	case machine && r.machine+1 >= maxSpoiled:
		return verdict{state: roost.Held, machine: true, code: HoldMachines, reason: fmt.Sprintf("%d machines in a row could not run it; the last: %s", r.machine+1, reason)}
	}
	return verdict{state: roost.Idle, machine: machine, reason: reason}
}
