package claim

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
)

// measureFrom begins to measure an attempt.
func (h *Runner) measureFrom(a *Attempt, from meter.Baseline) {
	m := meter.Attempt{
		ID: a.id, Schedd: h.file.Schedd, Claim: h.id, Group: h.group, Baseline: from, Limits: a.record.Bounds,
		Credential: h.cred, Scratch: a.record.Scratch, Temp: a.record.Base, IO: a.record.IO,
		Disk: h.file.Resources.Disk, Logs: h.logBounds(a),
		GPU: func() (busy float64, memory, peak roost.Bytes) { return h.machine.gpus.AttemptUsage(h.id) },
		End: func(cause wire.Cause, reason string) {
			h.queue.Put(VacateCmd{ID: a.id, Cause: cause, Reason: reason})
		},
	}
	if h.starter != nil {
		m.Starter = h.starter.PID()
	}
	h.machine.meters.Start(m)
}
