package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/consensus"
	"github.com/roost-batch/roost/internal/sim/kernel"
)

// at returns a node by its name.
func (p *Pool) at(name string) *node {
	n := p.byName[name]
	if n == nil {
		panic(fmt.Sprintf("pool: there is no node %q", name))
	}
	return n
}

// Crash kills a daemon; its master starts it again after a while.
func (p *Pool) Crash(name string, away time.Duration) {
	n := p.at(name)
	n.die()
	n.back(away)
}

// Flip kills a central manager, and flips a bit of the log on its disk, or a schedd, and makes an event of its log unreadable; it is started again after a while.
// Which bit or event is n's matter.
func (p *Pool) Flip(name string, n int, away time.Duration) {
	p.Crash(name, away)
	switch part := p.at(name).part.(type) {
	case *managerNode:
		part.files, _ = consensus.Flip(part.files, n)
	case *scheddNode:
		part.lose(n)
	}
}

// back has the daemon started after a while, and not before.
func (n *node) back(after time.Duration) {
	n.down = max(n.down, n.p.k.Now()+after)
	n.p.k.Plan(kernel.Event{At: n.down, Place: n.id, Kind: evStart})
}

// Reboot takes a host the power, for a while: its tasks are gone, and its clock of uptime begins at 0. Nobody is told.
func (p *Pool) Reboot(name string, away time.Duration) {
	n := p.at(name)
	n.off = true
	n.die()
	n.host++
	n.asleep = 0
	if m, ok := n.part.(*machineNode); ok {
		for _, id := range sorted(m.hands) {
			h := m.hands[id]
			h.starter.kill()
			h.starter.lives = false
		}
		if m.guard != nil {
			m.guard.rebooted()
		}
	}
	n.dark = max(n.dark, p.k.Now()+away)
	p.At(n.dark, func() {
		if n.off && n.dark <= p.k.Now() {
			n.off, n.bootedAt = false, p.k.Now()
			n.start()
		}
	})
}

// Tear has the write that is under way when the daemon dies next be on its disk all the same: nobody was told.
func (p *Pool) Tear(name string) { p.at(name).torn = true }

// Pause has a daemon stand still for a while, and not know it (SIGSTOP).
func (p *Pool) Pause(name string, d time.Duration) {
	n := p.at(name)
	n.still = max(n.still, p.k.Now()+d)
	n.wakeAt(n.stirs())
	p.unheard(n, n.still)
}

// Suspend has a host sleep with all that is on it. Its clock of uptime goes on.
func (p *Pool) Suspend(name string, d time.Duration) {
	n := p.at(name)
	until := p.k.Now() + d
	if until <= n.asleep || n.off {
		return
	}
	if n.asleep <= p.k.Now() {
		p.see(audit.Seen{What: audit.Froze, Node: name})
	}
	n.asleep = until
	host := n.host
	n.wakeAt(n.stirs())
	p.At(until, func() {
		if n.host == host && n.asleep <= p.k.Now() {
			p.see(audit.Seen{What: audit.Woke, Node: name})
			if m, ok := n.part.(*machineNode); ok && m.guard != nil {
				m.guard.plan(p.rand.Between(0, guardLooks), dueWoken, 0)
			}
		}
	})
	p.unheard(n, until)
}

// unheard breaks the streams of a node that nothing was heard of for too long.
func (p *Pool) unheard(n *node, until time.Duration) {
	if until-p.k.Now() <= silent {
		return
	}
	life := n.life
	p.At(p.k.Now()+silent, func() {
		if n.life != life || n.until() < until {
			return
		}
		for _, serial := range sorted(n.streams) {
			p.sever(n.streams[serial], nil)
		}
	})
}

// Cut has nothing come through from a node to another for a while. What is sent waits, as the transport tries again, until whoever hears nothing gives up.
func (p *Pool) Cut(from, to string, d time.Duration) {
	a, b := p.at(from), p.at(to)
	l := p.link(a, b)
	l.cut = max(l.cut, p.k.Now()+d)
	p.At(l.cut, func() {
		if !p.isCut(a, b) {
			p.mend(a, b)
		}
	})
	if d > silent {
		p.At(p.k.Now()+silent, func() {
			if p.isCut(a, b) {
				for _, s := range p.between(a, b) {
					p.sever(s, nil)
				}
			}
		})
	}
}

// TakesAddress cuts a machine off for a while, in which another one answers at its address: whoever opens a session there opens one with that. Afterwards
// these sessions break.
func (p *Pool) TakesAddress(name, by string, d time.Duration) {
	n, taker := p.at(name), p.at(by)
	for _, serial := range sorted(n.streams) {
		if s := n.streams[serial]; s.kind == ofSession { // the other's kernel knows nothing of it
			p.sever(s, nil)
		}
	}
	for _, other := range p.nodes {
		if other != n {
			p.Cut(name, other.name, d)
			p.Cut(other.name, name, d)
		}
	}
	until := p.k.Now() + d
	if p.net.taken == nil {
		p.net.taken = map[*node]taken{}
	}
	p.net.taken[n] = taken{taker, until}
	p.At(until, func() {
		if p.answers(n) != n {
			return
		}
		delete(p.net.taken, n)
		for _, serial := range sorted(taker.streams) {
			if s := taker.streams[serial]; s.meant == n {
				p.sever(s, nil)
			}
		}
	})
}

func (p *Pool) link(a, b *node) *link {
	key := [2]int32{a.id, b.id}
	if p.net.links[key] == nil {
		p.net.links[key] = &link{}
	}
	return p.net.links[key]
}

// Delay has messages from a node to another take longer for a while.
func (p *Pool) Delay(from, to string, extra, d time.Duration) {
	l := p.link(p.at(from), p.at(to))
	l.extra, l.extraTill = extra, max(l.extraTill, p.k.Now()+d)
}

// Break breaks all sessions between two nodes, with all that is on its way.
func (p *Pool) Break(a, b string) {
	for _, s := range p.between(p.at(a), p.at(b)) {
		p.sever(s, nil)
	}
}

// Step puts the wall clock of a node forward, or back, at once. A daemon that runs measures with another clock, as Go does; what it reads and writes down is the new time.
func (p *Pool) Step(name string, by time.Duration) { p.at(name).wall += by }

// SlowDisk has each write take longer for a while, and FullDisk none succeed.
func (p *Pool) SlowDisk(name string, each, d time.Duration) {
	n := p.at(name)
	n.write, n.writeTill = each, max(n.writeTill, p.k.Now()+d)
}

// FullDisk has no write succeed for a while.
func (p *Pool) FullDisk(name string, d time.Duration) {
	n := p.at(name)
	n.full = max(n.full, p.k.Now()+d)
}

// SlowNode has a daemon take so long for whatever it does, for a while.
func (p *Pool) SlowNode(name string, each, d time.Duration) {
	n := p.at(name)
	n.slow, n.slowTill = each, max(n.slowTill, p.k.Now()+d)
}

// Points are the named instants (package internal/fault) that a daemon passes.
func (p *Pool) Points(name string) []string { return p.at(name).part.points() }
