package startd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
)

// usageReport is what a report tells a schedd.
type usageReport struct {
	schedd string
	report *wire.UsageReport
}

// measureFrom begins to measure an attempt.
func (h *claimRunner) measureFrom(a *claimAttempt, from meter.Baseline) {
	m := meter.Attempt{
		ID: a.id, Schedd: h.file.Schedd, Claim: h.id, Group: h.group, Baseline: from, Limits: a.record.Bounds,
		Credential: h.cred, Scratch: a.record.Scratch, Temp: a.record.Base, IO: a.record.IO,
		Disk: h.file.Resources.Disk,
		GPU:  func() (busy float64, memory, peak roost.Bytes) { return h.host.gpus.AttemptUsage(h.id) },
		End: func(cause wire.Cause, reason string) {
			h.queue.Put(vacateCmd{id: a.id, cause: cause, reason: reason})
		},
	}
	if h.starter != nil {
		m.Starter = h.starter.PID()
	}
	h.host.meters.Start(m)
}

// OnUsageSample implements meter.Host.
func (m *claimHost) OnUsageSample(s meter.Sample) { m.postEvent(s) }

// OnCPUTime implements meter.Host.
func (m *claimHost) OnCPUTime(seconds float64) { m.stats.addCPUTime(time.Now(), seconds) }

// OnUsageReport implements meter.Host.
func (m *claimHost) OnUsageReport(schedd string, report *wire.UsageReport) {
	m.postEvent(usageReport{schedd, report})
}
