package pool

import (
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
)

// The death of a guard, and the silence that the startd then sees (package startd,
// guard_client.go). A restarted guard knows from its state file what it has frozen
// itself. It looks at the machine and reports everything that it sees as new.

// GuardDies kills the guard of a machine; its master restarts it after a time. Machines
// without a guard ignore it.
func (p *Pool) GuardDies(name string, away time.Duration) {
	m, ok := p.nodeByName(name).part.(*machineNode)
	if !ok || m.guard == nil || m.isOff {
		return
	}
	g := m.guard
	g.die()
	g.restartAt = max(g.restartAt, p.loop.Now()+away)
	g.nextDue(g.restartAt-p.loop.Now(), dueRestart, 0)
}

func (g *guardProcess) die() {
	if !g.unwatched {
		g.machine.pool.observe(audit.Event{Type: audit.GuardDied, Node: g.machine.name})
	}
	if g.connected && g.machine.isUp {
		g.machine.startGuardTimeout()
	}
	*g = guardProcess{machine: g.machine, ownerPresent: g.ownerPresent, ownerUntil: g.ownerUntil, sequence: g.sequence,
		frozeAt: g.frozeAt, restartAt: g.restartAt, dead: true, unwatched: true}
}

// restart starts the guard again.
func (g *guardProcess) restart() {
	if !g.dead || g.machine.pool.loop.Now() < g.restartAt {
		return
	}
	g.dead = false
	g.nextDue(g.machine.pool.rand.Between(time.Millisecond, guardStartDelay), dueLook, 0)
	if g.machine.isUp {
		g.machine.connectGuard()
	}
}

// sendFirst sends the first observations after a start. The presence of the owner is
// urgent then, and tasks that an earlier guard froze are reported again.
func (g *guardProcess) sendFirst() {
	if g.dead || !g.unwatched {
		return
	}
	g.unwatched = false
	g.machine.pool.observe(audit.Event{Type: audit.GuardWatching, Node: g.machine.name})
	if g.frozeAt != 0 {
		g.frozeAt = g.sequence + 1
	}
	if g.ownerPresent {
		g.ownerTouched()
	}
	g.sendObservations(g.ownerPresent)
}

// guardTimeout reports that the guard was silent for too long. It is void if the timeout
// has been restarted since.
type guardTimeout struct{ awaited uint64 }

// startGuardTimeout restarts the timeout within which the guard must report.
func (m *machineNode) startGuardTimeout() {
	m.guardTimeouts++
	m.scheduleEvent(m.pool.loop.Now()+guardTimeoutDelay, evReport, m.guardTimeouts, guardTimeout{m.guardTimeouts})
}

// connectGuard connects the startd with the guard.
func (m *machineNode) connectGuard() {
	if !m.guard.dead {
		m.scheduleEvent(m.pool.loop.Now()+m.pool.rand.Between(time.Millisecond, guardConnectDelay), evReport, 0,
			guardConnected{})
	}
}

// guardFound handles the connection with the guard.
func (m *machineNode) guardFound() {
	if m.guard.dead {
		return
	}
	if m.guard.connected = true; !m.guard.unwatched {
		m.handleObservations(m.guard.observations())
	}
}

// guardLost handles the silence of the guard.
func (m *machineNode) guardLost() {
	m.enforcer.GuardLost(m.bootTime())
	if !m.guardMissReported {
		m.guardMissReported = true
		m.pool.observe(audit.Event{Type: audit.GuardMissed, Node: m.name})
	}
}
