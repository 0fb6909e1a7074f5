package pool

import (
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
)

// What becomes of a guard that dies, and of a startd that hears nothing of it (package
// startd, guard.go). One that is started again knows from its books what it has stopped
// itself, looks at the machine, and says what it sees: of that everything is news to it.

// GuardDies kills the guard of a machine; its master starts it again after a while. On a
// machine that has none nothing happens.
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

// restart begins a life of the guard.
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

// sendFirst says the first signs. Somebody who is there is news that cannot wait; and
// what an earlier guard has stopped is told of again.
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

// guardTimeout is the news that nothing was heard of the guard for too long, unless
// something was since it was awaited so.
type guardTimeout struct{ awaited uint64 }

// startGuardTimeout begins the time in which the startd has to hear of the guard.
func (m *machineNode) startGuardTimeout() {
	m.guardTimeouts++
	m.scheduleEvent(m.pool.loop.Now()+guardTimeoutDelay, evReport, m.guardTimeouts, guardTimeout{m.guardTimeouts})
}

// connectGuard has the startd and the guard find each other.
func (m *machineNode) connectGuard() {
	if !m.guard.dead {
		m.scheduleEvent(m.pool.loop.Now()+m.pool.rand.Between(time.Millisecond, guardConnectDelay), evReport, 0,
			guardConnected{})
	}
}

// guardFound takes in that they have.
func (m *machineNode) guardFound() {
	if m.guard.dead {
		return
	}
	if m.guard.connected = true; !m.guard.unwatched {
		m.handleObservations(m.guard.observations())
	}
}

// guardLost takes in that nothing is heard of the guard.
func (m *machineNode) guardLost() {
	m.enforcer.GuardLost(m.bootTime())
	if !m.guardMissReported {
		m.guardMissReported = true
		m.pool.observe(audit.Event{Type: audit.GuardMissed, Node: m.name})
	}
}
