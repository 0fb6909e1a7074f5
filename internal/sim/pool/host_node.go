package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// wallStart is the unix time at the start of the simulation, unless the config sets it.
const wallStart = 1_800_000_000

// bootOffset is the boot time of hosts at the start. It is not 0, because 0 often means
// that there is no such instant.
const bootOffset = time.Hour

// daemon is the simulated part of a node that runs as its daemon.
type daemon interface {
	start()                               // starts from what is on its disk
	stop()                                // the daemon dies: only its disk remains
	acceptStream(s *daemonStream, m any)  // a peer opens a stream with message m
	handleMessage(s *daemonStream, m any) // a message on a stream
	streamBroken(s *daemonStream)         // a stream has ended or could not be opened
	handleDatagram(from *hostNode, m any)
	writeDone(number uint64) // a write is durable
	timerFired(a *daemonTimer)
	handleReport(m any) // a report of a starter, a guard or a background worker
	check()
	failpoints() []string
}

// hostNode is a host with one daemon, and the faults in effect there.
type hostNode struct {
	pool       *Pool
	id         int32
	name       string
	part       daemon
	daemonLife uint32 // number of the daemon's present life
	isUp       bool

	hostLife   uint32        // number of the host's present life
	isOff      bool          // the host is off
	offUntil   time.Duration // earliest time at which the host starts
	bootedAt   time.Duration // simulation time at which the host's boot time was 0
	wallOffset time.Duration // how far the wall clock is ahead
	downUntil  time.Duration // earliest time at which the daemon starts

	stalledUntil   time.Duration // the daemon is stopped until then
	isAsleep       time.Duration // the host is suspended until then
	eventDelay     time.Duration // time that each event takes
	slowUntil      time.Duration
	deferredEvents []eventloop.PlannedEvent
	wakeVersion    uint64 // version of the planned wake

	writeDelay, slowWriteUntil time.Duration // time by which each write takes longer, and until when
	diskFullUntil              time.Duration // until when every write fails
	tornWrite                  bool          // the write in progress at the next crash reaches the disk

	streams map[uint64]*daemonStream
}

func (p *Pool) newNode(name string, of daemon) *hostNode {
	n := &hostNode{pool: p, id: int32(len(p.nodes)), name: name, part: of, bootedAt: -bootOffset,
		streams: map[uint64]*daemonStream{}}
	p.nodes = append(p.nodes, n)
	p.byName[name] = n
	return n
}

// similarUnusedName returns a name close to the given one that no machine has.
func (p *Pool) similarUnusedName(name string) string {
	for slices.ContainsFunc(p.cfg.Machines, func(m MachineConfig) bool { return m.Name == name }) {
		name += "x"
	}
	return name
}

// wallTime returns the host's clocks as a Go process reads them: wall clock and boot
// time.
func (n *hostNode) wallTime() time.Time {
	return clockReading(n.pool.cfg.StartTime.Add(n.pool.loop.Now()+n.wallOffset), n.bootTime())
}

func (n *hostNode) bootTime() time.Duration { return n.pool.loop.Now() - n.bootedAt }

// simTime converts an instant to simulation time. It uses the monotonic clock if the
// instant has one, as time.Until does, and otherwise the wall clock.
func (n *hostNode) simTime(at time.Time) time.Duration {
	return n.pool.loop.Now() + at.Sub(n.wallTime())
}

// scheduleEvent plans an event of the daemon's present life.
func (n *hostNode) scheduleEvent(at time.Duration, kind uint8, number uint64, with any) {
	n.pool.loop.Schedule(eventloop.PlannedEvent{At: at, Place: n.id, Kind: kind, Generation: n.daemonLife,
		Number: number, Payload: with})
}

// start starts the daemon.
func (n *hostNode) start() {
	if n.isUp || n.isOff || n.pool.loop.Now() < n.downUntil {
		return
	}
	n.isUp = true
	n.part.start()
}

// kill ends the daemon: what is in transit to it is lost, and only its disk remains.
func (n *hostNode) kill() {
	if !n.isUp {
		return
	}
	n.part.stop()
	n.isUp = false
	n.daemonLife++
	waiting := n.deferredEvents
	n.stalledUntil, n.deferredEvents = 0, nil
	n.breakStreams()
	for _, e := range waiting {
		switch {
		case e.Kind == evDeliver:
			e.Payload.(*packet).returnToSender(n)
		case e.Kind == evTask:
			n.deferredEvents = append(n.deferredEvents, e)
		}
	}
	if len(n.deferredEvents) > 0 {
		n.wakeAt(n.nextRunnable())
	}
}

// killAndRestart ends the daemon; its master restarts it.
func (n *hostNode) killAndRestart() {
	n.kill()
	n.restartAfter(n.pool.cfg.Times.Restart)
}

// nextDaemonTime returns when the daemon can next act; a time in the past means now.
func (n *hostNode) nextDaemonTime() time.Duration { return max(n.stalledUntil, n.isAsleep) }

// nextRunnable returns when anything on the host can next act. Other processes of the
// host run while the daemon is stopped.
func (n *hostNode) nextRunnable() time.Duration {
	if n.isAsleep > n.pool.loop.Now() {
		return n.isAsleep
	}
	return n.stalledUntil
}

// runDaemonEvent runs an event of the daemon, or defers it while the daemon is stopped.
func (n *hostNode) runDaemonEvent(e eventloop.PlannedEvent) {
	if e.Generation != n.daemonLife || !n.isUp {
		if e.Kind == evDeliver {
			e.Payload.(*packet).returnToSender(n)
		}
		return
	}
	if until := n.nextDaemonTime(); until > n.pool.loop.Now() || len(n.deferredEvents) > 0 {
		n.deferredEvents = append(n.deferredEvents, e)
		if e.Kind == evDeliver {
			e.Payload.(*packet).arrived = true
		}
		n.wakeAt(n.nextRunnable())
		return
	}
	n.runEvent(e)
}

func (n *hostNode) wakeAt(at time.Duration) {
	n.wakeVersion++
	n.pool.loop.Schedule(eventloop.PlannedEvent{At: at, Place: n.id, Kind: evWake, Number: n.wakeVersion})
}

// runDeferred runs the deferred events, those of the host first. It resumes later if each
// of them takes time.
func (n *hostNode) runDeferred(version uint64) {
	if version != n.wakeVersion {
		return
	}
	if n.isAsleep > n.pool.loop.Now() {
		n.wakeAt(n.isAsleep)
		return
	}
	ofHost := func(e eventloop.PlannedEvent) bool { return e.Kind == evTask }
	for i := slices.IndexFunc(n.deferredEvents, ofHost); i >= 0; i = slices.IndexFunc(n.deferredEvents, ofHost) {
		e := n.deferredEvents[i]
		n.deferredEvents = slices.Delete(n.deferredEvents, i, i+1)
		n.runHostEvent(e)
	}
	for len(n.deferredEvents) > 0 && n.nextDaemonTime() <= n.pool.loop.Now() {
		e := n.deferredEvents[0]
		n.deferredEvents = n.deferredEvents[1:]
		if e.Generation == n.daemonLife && n.isUp {
			n.runEvent(e)
		}
	}
	if len(n.deferredEvents) > 0 {
		n.wakeAt(n.nextRunnable())
	}
}

// runEvent runs an event of a daemon that can act.
func (n *hostNode) runEvent(e eventloop.PlannedEvent) {
	switch e.Kind {
	case evDeliver:
		e.Payload.(*packet).deliver(n)
	case evStreamDown:
		if s := e.Payload.(*daemonStream); n.streams[s.serial] == s {
			delete(n.streams, s.serial)
			n.part.streamBroken(s)
		}
	case evOpen:
		n.pool.network().tryOpen(e.Payload.(*daemonStream))
	case evDisk:
		n.part.writeDone(e.Number)
	case evTick:
		if a := e.Payload.(*daemonTimer); a.version == e.Number {
			a.set = false
			n.part.timerFired(a)
		}
	case evReport:
		n.part.handleReport(e.Payload)
	}
	if n.slowUntil > n.pool.loop.Now() {
		n.stalledUntil = max(n.stalledUntil, n.pool.loop.Now()+n.eventDelay)
	}
}

// runHostEvent runs an event of the host, or defers it while the host is suspended.
func (n *hostNode) runHostEvent(e eventloop.PlannedEvent) {
	if e.Generation != n.hostLife || n.isOff {
		return
	}
	if n.isAsleep > n.pool.loop.Now() {
		n.deferredEvents = append(n.deferredEvents, e)
		n.wakeAt(n.isAsleep)
		return
	}
	e.Payload.(hostProcess).runDue(e.Number)
}

// hostProcess is a process beside the daemon, with due events of its own.
type hostProcess interface{ runDue(number uint64) }

// daemonTimer is a timer of a daemon. It may fire early.
type daemonTimer struct {
	at      time.Duration
	version uint64
	set     bool
}

// setTimer makes a timer fire at an instant or earlier.
func (n *hostNode) setTimer(a *daemonTimer, at time.Duration) {
	if at = max(at, n.pool.loop.Now()); a.set && a.at <= at {
		return
	}
	a.at, a.set = at, true
	a.version++
	n.scheduleEvent(at, evTick, a.version, a)
}

// writeTime returns how long a write takes now, and whether it will succeed.
func (n *hostNode) writeTime() (takes time.Duration, ok bool) {
	now, t := n.pool.loop.Now(), &n.pool.cfg.Times
	takes = n.pool.rand.Between(t.Write, t.WriteMax)
	if n.slowWriteUntil > now {
		takes += n.writeDelay
	}
	return takes, n.diskFullUntil <= now
}
