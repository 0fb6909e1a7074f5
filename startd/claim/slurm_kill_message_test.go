package claim

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestSlurmKillMessage holds the lines against those of slurmstepd, in which clients look
// for the reason.
func TestSlurmKillMessage(t *testing.T) {
	at := time.Date(2026, 11, 23, 3, 20, 11, 0, time.UTC)
	const killed = "slurmstepd: error: *** JOB 28 ON n1 CANCELLED AT 2026-11-23T03:20:11"
	for cause, want := range map[wire.Cause]string{
		wire.Cause_CAUSE_EXITED: "", wire.Cause_CAUSE_MACHINE: "", wire.Cause_CAUSE_REMOVED: killed + " ***",
		wire.Cause_CAUSE_WALLTIME: killed + " DUE TO TIME LIMIT ***",
		wire.Cause_CAUSE_VACATED:  killed + " DUE TO PREEMPTION ***",
		wire.Cause_CAUSE_MEMORY: "slurmstepd: error: Detected 1 oom_kill event in StepId=28.batch. " +
			"Some of the step tasks have been OOM Killed.",
	} {
		if got := slurmKillMessage("28", "n1", at, &wire.ExitStatus{Cause: cause}); got != want {
			t.Errorf("%v: %q, want %q", cause, got, want)
		}
	}
}
