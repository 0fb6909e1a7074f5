package claim

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
)

// TestKilled holds what a job of qsub finds in its standard error against what PBS writes
// there.
func TestKilled(t *testing.T) {
	const s, kb = int64(time.Second), 1 << 10
	for want, c := range map[string]struct {
		record attemptRecord
		exit   *wire.ExitStatus
	}{
		"": {attemptRecord{Walltime: time.Hour}, &wire.ExitStatus{Code: 3, Wall: 7 * s}},
		"walltime 3603 exceeded limit 3600": {
			attemptRecord{Walltime: time.Hour}, &wire.ExitStatus{Cause: wire.Cause_CAUSE_WALLTIME, Wall: 3603 * s},
		},
		"walltime 100 exceeded limit 90": {
			attemptRecord{Walltime: 50 * time.Second, Work: priorUsage{Wall: 40 * s}},
			&wire.ExitStatus{Cause: wire.Cause_CAUSE_WALLTIME, Wall: 60 * s},
		},
		"cput 12 exceeded limit 10": {
			attemptRecord{Bounds: meter.Limits{CPU: 8 * time.Second}, Work: priorUsage{User: s, System: s}},
			&wire.ExitStatus{Cause: wire.Cause_CAUSE_CPU_TIME, UserCpu: 7 * s,
				Usage: &wire.TaskUsage{UserCpu: 6 * s, SystemCpu: 3 * s}},
		},
		"mem 1000kb exceeded limit 1000kb": {
			attemptRecord{}, &wire.ExitStatus{Cause: wire.Cause_CAUSE_MEMORY,
				Usage: &wire.TaskUsage{PeakMemory: 1000 * kb}},
		},
		"pmem exceeded limit 100kb": {
			attemptRecord{Bounds: meter.Limits{ProcessMemory: 100 * kb}},
			&wire.ExitStatus{Cause: wire.Cause_CAUSE_MEMORY, Usage: &wire.TaskUsage{PeakMemory: 200 * kb}},
		},
		"vmem exceeded limit 100kb": {attemptRecord{Bounds: meter.Limits{Virtual: 100 * kb}},
			&wire.ExitStatus{Cause: wire.Cause_CAUSE_VIRTUAL}},
	} {
		if got := killMessage(&c.record, 1000*roost.KiB, c.exit); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
