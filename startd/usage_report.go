package startd

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
)

// usageReport is what a report tells a schedd.
type usageReport struct {
	schedd string
	report *wire.UsageReport
}

// OnUsageSample implements meter.Host.
func (m *startdHost) OnUsageSample(s meter.Sample) { m.postEvent(s) }

// OnCPUTime implements meter.Host.
func (m *startdHost) OnCPUTime(seconds float64) { m.stats.addCPUTime(time.Now(), seconds) }

// OnDiskFull implements meter.DiskHost.
func (m *startdHost) OnDiskFull(f meter.DiskFull) {
	m.postEvent(loopQuery{func(l *machineLoop) { endForDisk(l, f) }, make(chan struct{})})
}

// endForDisk ends claims whose tasks have to leave because of the disk. They are ended at
// once: an image would need room that there is not.
func endForDisk(l *machineLoop, f meter.DiskFull) {
	for _, id := range slices.Sorted(maps.Keys(f.Claims)) {
		l.host.log.Warn("a task leaves because of the disk", "claim", id, "reason", f.Claims[id])
		l.table.EndClaim(id, true, f.Claims[id])
	}
}

// OnUsageReport implements meter.Host.
func (m *startdHost) OnUsageReport(schedd string, report *wire.UsageReport) {
	m.postEvent(usageReport{schedd, report})
}
