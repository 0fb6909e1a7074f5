package claim

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// writeKillMessage writes into the standard error of a job of qsub which limit ended it,
// as PBS does. People look there first, and clients look for these words. It does so
// before the output is taken to be whole.
func (h *Runner) writeKillMessage(a *Attempt, status *wire.ExitStatus) {
	words := killMessage(&a.record, h.file.Resources.Memory, status)
	if !a.record.PBS || words == "" {
		return
	}
	if err := a.writeOutputMessage(
		OutputMessageCmd{a.id, "=>> PBS: job killed: " + words + "\n", false, true}); err != nil {
		h.machine.log.Warn("a job is not told why it was ended", "attempt", a.Label(), "err", err)
	}
}

// killMessage says in PBS's words which limit an attempt was ended for; nothing if it was
// for none. What it did before it went on from an image counts.
func killMessage(r *attemptRecord, memory roost.Bytes, x *wire.ExitStatus) string {
	before, b := r.Work, r.Bounds
	seconds := func(ns int64) int64 { return ns / int64(time.Second) }
	switch x.GetCause() {
	case wire.Cause_CAUSE_WALLTIME:
		return fmt.Sprintf("walltime %d exceeded limit %d", seconds(before.Wall+x.GetWall()),
			seconds(before.Wall+int64(r.Walltime)))
	case wire.Cause_CAUSE_CPU_TIME:
		done := before.User + before.System
		used := max(x.GetUsage().GetUserCpu(), x.GetUserCpu()) + max(x.GetUsage().GetSystemCpu(), x.GetSystemCpu())
		limit := done + int64(b.CPU)
		// of several chunks it is one part only that is known here
		return fmt.Sprintf("cput %d exceeded limit %d", seconds(max(done+used, limit)), seconds(limit))
	case wire.Cause_CAUSE_VIRTUAL:
		return fmt.Sprintf("vmem exceeded limit %dkb", b.Virtual/roost.KiB)
	case wire.Cause_CAUSE_MEMORY:
		if x.GetUsage().GetPeakMemory() < int64(memory) && b.ProcessMemory > 0 {
			return fmt.Sprintf("pmem exceeded limit %dkb", b.ProcessMemory/roost.KiB)
		}
		return fmt.Sprintf("mem %dkb exceeded limit %dkb",
			max(x.GetUsage().GetPeakMemory(), x.GetMaxRss())/int64(roost.KiB), memory/roost.KiB)
	}
	return ""
}
