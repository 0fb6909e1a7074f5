package pool

import (
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
)

// What becomes of a guard that dies, and of a startd that hears nothing of it (package startd, guard.go). One that is started again knows from its books what it has
// stopped itself, looks at the machine, and says what it sees: of that everything is news to it.

// GuardDies kills the guard of a machine; its master starts it again after a while. On a machine that has none nothing happens.
func (p *Pool) GuardDies(name string, away time.Duration) {
	m, ok := p.at(name).part.(*machineNode)
	if !ok || m.guard == nil || m.off {
		return
	}
	g := m.guard
	g.die()
	g.back = max(g.back, p.k.Now()+away)
	g.plan(g.back-p.k.Now(), dueBack, 0)
}

func (g *guard) die() {
	if !g.blind {
		g.m.p.see(audit.Seen{What: audit.Unwatched, Node: g.m.name})
	}
	if g.present && g.m.up {
		g.m.await()
	}
	*g = guard{m: g.m, there: g.there, until: g.until, sequence: g.sequence, frozeAt: g.frozeAt, back: g.back, dead: true, blind: true}
}

// started begins a life of the guard.
func (g *guard) started() {
	if !g.dead || g.m.p.k.Now() < g.back {
		return
	}
	g.dead = false
	g.plan(g.m.p.rand.Between(time.Millisecond, guardGrace), dueLook, 0)
	if g.m.up {
		g.m.call()
	}
}

// look says the first signs. Somebody who is there is news that cannot wait; and what an earlier guard has stopped is told of again.
func (g *guard) look() {
	if g.dead || !g.blind {
		return
	}
	g.blind = false
	g.m.p.see(audit.Seen{What: audit.Watched, Node: g.m.name})
	if g.frozeAt != 0 {
		g.frozeAt = g.sequence + 1
	}
	if g.there {
		g.noted()
	}
	g.tell(g.there)
}

// missing is the news that nothing was heard of the guard for too long, unless something was since it was awaited so.
type missing struct{ awaited uint64 }

// await begins the time in which the startd has to hear of the guard.
func (m *machineNode) await() {
	m.awaited++
	m.plan(m.p.k.Now()+guardAway, evNews, m.awaited, missing{m.awaited})
}

// call has the startd and the guard find each other.
func (m *machineNode) call() {
	if !m.guard.dead {
		m.plan(m.p.k.Now()+m.p.rand.Between(time.Millisecond, guardCalled), evNews, 0, called{})
	}
}

// found takes in that they have.
func (m *machineNode) found() {
	if m.guard.dead {
		return
	}
	if m.guard.present = true; !m.guard.blind {
		m.signed(m.guard.signs())
	}
}

// lost takes in that nothing is heard of the guard.
func (m *machineNode) lost() {
	m.lender.GuardLost(m.boot())
	if !m.missed {
		m.missed = true
		m.p.see(audit.Seen{What: audit.Missed, Node: m.name})
	}
}
