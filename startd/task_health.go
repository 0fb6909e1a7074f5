package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/health"
	"github.com/roost-batch/roost/startd/probe"
	"github.com/roost-batch/roost/startd/slot"
)

// onHealthEvent takes in how an attempt of a service is, and tells its schedd.
func (l *machineLoop) onHealthEvent(n claim.HealthEvent) {
	c, ok := l.table.Find(n.ID)
	if !ok || c.ID != n.Claim || !c.Running {
		return
	}
	before := l.health[n.Claim].Health
	l.health[n.Claim] = n
	l.sendTo(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Health{Health: n.Health}})
	if before == nil || before.GetState() != n.Health.GetState() ||
		before.GetAttempt().GetAttempt() != n.Health.GetAttempt().GetAttempt() {
		l.endpointsStale = true
	}
}

// forgetHealth forgets how the attempt of a claim is. The next ad does not name it.
func (l *machineLoop) forgetHealth(id slot.ClaimID) {
	if _, ok := l.health[id]; ok {
		delete(l.health, id)
		delete(l.printedEndpoints, id)
		l.endpointsStale = true
	}
}

// onMetricEvent tells a schedd what the metric of an attempt is.
func (l *machineLoop) onMetricEvent(n claim.MetricEvent) {
	if c, ok := l.table.Find(n.ID); ok && c.ID == n.Claim && c.Running {
		l.sendTo(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Metric{Metric: n.Metric}})
	}
}

// resendHealth tells a schedd again how its tasks are. What was sent on an older session
// may have been lost.
func (l *machineLoop) resendHealth(s *scheddSession) {
	for _, c := range l.table.ClaimsOf(s.schedd) {
		if h := l.health[c.ID].Health; h != nil && h.GetAttempt().AttemptID(s.schedd) == c.Attempt {
			s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Health{Health: h}})
		}
	}
}

// newProber returns the prober of the machine, whose results are counted.
func (m *startdHost) newProber() (*probe.Prober, error) {
	return probe.New(func(kind health.CheckKind, outcome health.Outcome, duration time.Duration) {
		m.checkMetrics.Count(int(kind), int(outcome), duration)
	})
}

// runProber runs health checks until ctx ends. A machine that cannot goes on without: its
// tasks keep the states that they have.
func (m *startdHost) runProber(ctx context.Context) {
	if err := m.prober.Run(ctx); err != nil && ctx.Err() == nil {
		m.log.Error("health checks have ended", "err", err)
	}
}
