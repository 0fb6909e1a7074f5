package startd

import (
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

// OnUsageReport implements meter.Host.
func (m *startdHost) OnUsageReport(schedd string, report *wire.UsageReport) {
	m.postEvent(usageReport{schedd, report})
}
