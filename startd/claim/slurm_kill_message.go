package claim

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// writeSlurmKillMessage writes into the standard error of a job of sbatch why it was
// ended, as slurmd does. Clients look for these words. It does so before the output is
// taken to be whole.
func (h *Runner) writeSlurmKillMessage(a *Attempt, status *wire.ExitStatus) {
	text := slurmKillMessage(a.record.Slurm, h.machine.config.Name, time.Now(), status)
	if a.record.Slurm == "" || text == "" {
		return
	}
	if err := a.writeOutputMessage(OutputMessageCmd{a.id, text + "\n", false, true}); err != nil {
		h.machine.log.Warn("a job does not have why it was ended", "attempt", a.Label(), "err", err)
	}
}

// slurmKillMessage is the line of slurmd about a job that was ended. There is none about
// a job that has ended by itself.
func slurmKillMessage(id, node string, now time.Time, x *wire.ExitStatus) string {
	why := ""
	switch x.GetCause() {
	case wire.Cause_CAUSE_WALLTIME:
		why = " DUE TO TIME LIMIT"
	case wire.Cause_CAUSE_PREEMPTED, wire.Cause_CAUSE_VACATED:
		why = " DUE TO PREEMPTION"
	case wire.Cause_CAUSE_MEMORY:
		return fmt.Sprintf("slurmstepd: error: Detected 1 oom_kill event in StepId=%s.batch. Some of the step tasks "+
			"have been OOM Killed.", id)
	case wire.Cause_CAUSE_REMOVED:
	default:
		return ""
	}
	return fmt.Sprintf("slurmstepd: error: *** JOB %s ON %s CANCELLED AT %s%s ***", id, node,
		now.Format("2006-01-02T15:04:05"), why)
}
