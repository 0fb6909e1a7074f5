package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/consensus"
	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// nodeByName returns a node by name.
func (p *Pool) nodeByName(name string) *hostNode {
	n := p.byName[name]
	if n == nil {
		panic(fmt.Sprintf("pool: there is no node %q", name))
	}
	return n
}

// CrashDaemon kills a daemon; its master restarts it after a time.
func (p FaultInjector) CrashDaemon(name string, away time.Duration) {
	n := p.nodeByName(name)
	n.kill()
	n.restartAfter(away)
}

// FlipBit kills a daemon, damages its log and restarts it after a time. In the log of a
// central manager or of a member of the cell's queue it flips a bit; in that of a schedd
// it makes an event unreadable. n selects the bit or event.
func (p FaultInjector) FlipBit(name string, n int, away time.Duration) {
	p.CrashDaemon(name, away)
	switch part := p.nodeByName(name).part.(type) {
	case *managerNode:
		part.files, _ = consensus.FlipBit(part.files, n)
	case *cellMember:
		part.log.files, _ = consensus.FlipBit(part.log.files, n)
	case *scheddNode:
		part.damageEvent(n)
	}
}

// restartAfter plans the restart of the daemon after a time, and prevents an earlier one.
func (n *hostNode) restartAfter(after time.Duration) {
	n.downUntil = max(n.downUntil, n.pool.loop.Now()+after)
	n.pool.loop.Schedule(eventloop.PlannedEvent{At: n.downUntil, Place: n.id, Kind: evStart})
}

// RebootHost turns a host off for a time without notice. Its tasks are gone, and its boot
// time begins at 0.
func (p FaultInjector) RebootHost(name string, away time.Duration) {
	n := p.nodeByName(name)
	n.isOff = true
	n.kill()
	n.hostLife++
	n.isAsleep = 0
	if m, ok := n.part.(*machineNode); ok {
		for _, id := range sortedKeys(m.claimRunners) {
			h := m.claimRunners[id]
			h.starter.killAttempt()
			h.starter.isAlive = false
		}
		if m.guard != nil {
			m.guard.reset()
		}
	}
	n.offUntil = max(n.offUntil, p.loop.Now()+away)
	p.CallAt(n.offUntil, func() {
		if n.isOff && n.offUntil <= p.loop.Now() {
			n.isOff, n.bootedAt = false, p.loop.Now()
			n.start()
		}
	})
}

// TearNextWrite lets the write in progress at the daemon's next crash reach the disk,
// although its completion is never reported.
func (p FaultInjector) TearNextWrite(name string) { p.nodeByName(name).tornWrite = true }

// PauseDaemon stops a daemon for a time without its notice (SIGSTOP).
func (p FaultInjector) PauseDaemon(name string, d time.Duration) {
	n := p.nodeByName(name)
	n.stalledUntil = max(n.stalledUntil, p.loop.Now()+d)
	n.wakeAt(n.nextRunnable())
	p.breakSilentStreams(n, n.stalledUntil)
}

// SuspendHost suspends a host with all that runs on it. Its boot time advances.
func (p FaultInjector) SuspendHost(name string, d time.Duration) {
	n := p.nodeByName(name)
	until := p.loop.Now() + d
	if until <= n.isAsleep || n.isOff {
		return
	}
	if n.isAsleep <= p.loop.Now() {
		p.observe(audit.Event{Type: audit.Slept, Node: name})
	}
	n.isAsleep = until
	host := n.hostLife
	n.wakeAt(n.nextRunnable())
	p.CallAt(until, func() {
		if n.hostLife == host && n.isAsleep <= p.loop.Now() {
			p.observe(audit.Event{Type: audit.Woke, Node: name})
			if m, ok := n.part.(*machineNode); ok && m.guard != nil {
				m.guard.nextDue(p.rand.Between(0, guardInterval), dueWoken, 0)
			}
		}
	})
	p.breakSilentStreams(n, until)
}

// breakSilentStreams breaks the streams of a node that stays silent for too long.
func (p *Pool) breakSilentStreams(n *hostNode, until time.Duration) {
	if until-p.loop.Now() <= silenceTimeout {
		return
	}
	life := n.daemonLife
	p.CallAt(p.loop.Now()+silenceTimeout, func() {
		if n.daemonLife != life || n.nextDaemonTime() < until {
			return
		}
		for _, serial := range sortedKeys(n.streams) {
			p.network().breakStream(n.streams[serial], nil)
		}
	})
}

// CutLink drops everything from one node to another for a time. Messages wait, as the
// transport retransmits them, until a side gives up.
func (p FaultInjector) CutLink(from, to string, d time.Duration) {
	a, b := p.nodeByName(from), p.nodeByName(to)
	l := p.link(a, b)
	l.cutUntil = max(l.cutUntil, p.loop.Now()+d)
	p.CallAt(l.cutUntil, func() {
		if !p.network().isCut(a, b) {
			p.network().resumeAfterCut(a, b)
		}
	})
	if d > silenceTimeout {
		p.CallAt(p.loop.Now()+silenceTimeout, func() {
			if p.network().isCut(a, b) {
				for _, s := range p.network().streamsBetween(a, b) {
					p.network().breakStream(s, nil)
				}
			}
		})
	}
}

// TakesAddress cuts a machine off for a time while another one answers at its address.
// New sessions to the address reach the other machine, and break afterwards.
func (p FaultInjector) TakesAddress(name, by string, d time.Duration) {
	n, taker := p.nodeByName(name), p.nodeByName(by)
	for _, serial := range sortedKeys(n.streams) {
		if s := n.streams[serial]; s.kind == sessionStream { // the other machine's kernel does not know the connection
			p.network().breakStream(s, nil)
		}
	}
	for _, other := range p.nodes {
		if other != n {
			p.CutLink(name, other.name, d)
			p.CutLink(other.name, name, d)
		}
	}
	until := p.loop.Now() + d
	if p.net.takeovers == nil {
		p.net.takeovers = map[*hostNode]addressTakeover{}
	}
	p.net.takeovers[n] = addressTakeover{taker, until}
	p.CallAt(until, func() {
		if p.network().answeringNode(n) != n {
			return
		}
		delete(p.net.takeovers, n)
		for _, serial := range sortedKeys(taker.streams) {
			if s := taker.streams[serial]; s.intended == n {
				p.network().breakStream(s, nil)
			}
		}
	})
}

func (p *Pool) link(a, b *hostNode) *nodeLink {
	key := [2]int32{a.id, b.id}
	if p.net.links[key] == nil {
		p.net.links[key] = &nodeLink{}
	}
	return p.net.links[key]
}

// DelayLink delays messages from one node to another for a time.
func (p FaultInjector) DelayLink(from, to string, extra, d time.Duration) {
	l := p.link(p.nodeByName(from), p.nodeByName(to))
	l.extraDelay, l.extraUntil = extra, max(l.extraUntil, p.loop.Now()+d)
}

// BreakSessions breaks all sessions between two nodes, with everything in transit.
func (p FaultInjector) BreakSessions(a, b string) {
	for _, s := range p.network().streamsBetween(p.nodeByName(a), p.nodeByName(b)) {
		p.network().breakStream(s, nil)
	}
}

// StepClock sets the wall clock of a node forward or back. Running daemons measure
// durations by a monotonic clock, as Go does, but record the new time.
func (p FaultInjector) StepClock(name string, by time.Duration) { p.nodeByName(name).wallOffset += by }

// SlowDisk makes each write take longer for a time.
func (p FaultInjector) SlowDisk(name string, each, d time.Duration) {
	n := p.nodeByName(name)
	n.writeDelay, n.slowWriteUntil = each, max(n.slowWriteUntil, p.loop.Now()+d)
}

// FullDisk makes every write fail for a time.
func (p FaultInjector) FullDisk(name string, d time.Duration) {
	n := p.nodeByName(name)
	n.diskFullUntil = max(n.diskFullUntil, p.loop.Now()+d)
}

// SlowNode makes every event of a daemon take longer for a time.
func (p FaultInjector) SlowNode(name string, each, d time.Duration) {
	n := p.nodeByName(name)
	n.eventDelay, n.slowUntil = each, max(n.slowUntil, p.loop.Now()+d)
}

// Failpoints returns the failpoints (package internal/failpoint) that a daemon passes.
func (p FaultInjector) Failpoints(name string) []string { return p.nodeByName(name).part.failpoints() }
