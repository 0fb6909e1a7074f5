package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// CheckName is the name of the check that the services with a HealthModel have.
const CheckName = "up"

// healthChanged reports to the startd that a check has another result.
type healthChanged struct {
	claim   slot.ClaimID
	attempt roost.AttemptID
}

// scheduleHealth plans the next change of what a running program answers to its checks.
// While it is frozen nothing changes.
func (s *starterProcess) scheduleHealth() {
	p := s.runner.machine.pool
	model := p.cfg.Jobs[s.job].Health
	if model == nil || s.initial {
		return
	}
	wait, next := p.rand.Between(time.Millisecond, model.Change), wire.HealthState_HEALTH_STATE_READY
	if s.health == wire.HealthState_HEALTH_STATE_READY {
		wait, next = p.rand.Between(time.Millisecond, model.Ready), wire.HealthState_HEALTH_STATE_UNREADY
		if p.rand.Uint64()%2 == 0 {
			next = wire.HealthState_HEALTH_STATE_FAILING
		}
		if p.loop.Now()+wait >= model.Until {
			return
		}
	}
	s.nextHealth = next
	s.scheduleDue(wait, dueHealth)
}

// changeHealth has the startd see the planned change, if it is there.
func (s *starterProcess) changeHealth() {
	m := s.runner.machine
	s.health = s.nextHealth
	m.scheduleEvent(m.pool.loop.Now(), evReport, uint64(s.runner.id), &healthChanged{s.runner.id, s.attempt})
	s.scheduleHealth()
}

// reportHealth tells the schedd how an attempt is, as startd's onHealthEvent does.
func (m *machineNode) reportHealth(x *healthChanged) {
	h, c := m.claimRunners[x.claim], slot.Claim{}
	if known, ok := m.core.Claim(x.claim); ok {
		c = *known
	}
	if h != nil && c.Running && h.starter.attempt == x.attempt && h.starter.phase == phaseRunning {
		m.sendToSchedd(c.Schedd, h.starter.healthMessage())
	}
}

// resendHealth tells a schedd how its tasks are, at the beginning of a session.
func (m *machineNode) resendHealth(schedd string) {
	for _, c := range m.core.ClaimsOf(schedd) {
		h := m.claimRunners[c.ID]
		if h != nil && c.Running && h.starter.phase == phaseRunning &&
			h.starter.health != wire.HealthState_HEALTH_STATE_STARTING {
			m.sendToSchedd(schedd, h.starter.healthMessage())
		}
	}
}

func (s *starterProcess) healthMessage() *wire.FromStartd {
	return &wire.FromStartd{Of: &wire.FromStartd_Health{Health: &wire.TaskHealth{
		Attempt: reference(s.attempt), State: s.health, Check: CheckName,
	}}}
}
