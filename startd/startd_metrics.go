package startd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// loopMetrics counts what happens on a machine, in its loop.
type loopMetrics struct {
	*metrics.Startd
	throttledSince map[slot.ClaimID]roost.BootTime // of claims that are held back
	throttled      roost.BootTime                  // for how long claims were held back, those left out
}

// newLoopMetrics counts in the registry of an exporter, which may be nil.
func newLoopMetrics(e *metrics.Exporter) loopMetrics {
	return loopMetrics{Startd: metrics.NewStartd(e.Registry()), throttledSince: map[slot.ClaimID]roost.BootTime{}}
}

// wakeForMetrics has the loop make a snapshot soon, unless it has too much to do.
func (m *startdHost) wakeForMetrics() {
	select {
	case m.inbox <- loopQuery{(*machineLoop).refreshMetrics, make(chan struct{})}:
	default:
	}
}

// countEnd counts the end of an attempt.
func (m *loopMetrics) countEnd(x *wire.Exited) {
	switch x.GetStatus().GetCause() {
	case wire.Cause_CAUSE_MEMORY:
		m.OOMKills.Inc()
	case wire.Cause_CAUSE_LEASE:
		m.LeasesExpired.Inc()
	}
}

// setThrottled notes whether a claim is held back from now on.
func (m *loopMetrics) setThrottled(id slot.ClaimID, on bool) {
	since, was := m.throttledSince[id]
	switch now := boottime.Now(); {
	case on && !was:
		m.throttledSince[id] = now
	case !on && was:
		m.throttled += now - since
		delete(m.throttledSince, id)
	}
}

// refreshMetrics publishes a snapshot if somebody reads them.
func (l *machineLoop) refreshMetrics() {
	l.metrics.Snapshots.Refresh(time.Now(), func() metrics.StartdSnapshot { return l.metrics.snapshotOf(l) })
}

// snapshotOf returns the state of a machine.
func (m *loopMetrics) snapshotOf(l *machineLoop) (s metrics.StartdSnapshot) {
	ad := l.table.Ad()
	if l.ownerState != nil {
		l.ownerState.Describe(ad)
	}
	state, _ := ad.Str(roost.AttrState)
	total, _ := ad.Real(roost.AttrTotalCpus)
	free, _ := ad.Real(roost.AttrCpus)
	metrics.AddAmounts(&s.Cores, state, total, free)
	total, _ = ad.Real(roost.AttrTotalMemory)
	free, _ = ad.Real(roost.AttrMemory)
	metrics.AddAmounts(&s.Memory, state, total*float64(roost.MiB), free*float64(roost.MiB))
	for _, c := range l.table.Claims() {
		switch {
		case !c.Running:
		case c.Class == gpu.StreamClass:
			s.StreamTasks++
		default:
			s.BatchTasks++
		}
	}
	throttled, now := m.throttled, boottime.Now()
	for _, since := range m.throttledSince {
		throttled += now - since
	}
	s.ThrottledSeconds = throttled.Seconds()
	ports := slot.PortsOf(l.table).Table().Counts()
	s.PortsHeld, s.PortsQuarantined, s.PortsBusy = ports.Held, ports.Quarantined, ports.Busy
	return s
}
