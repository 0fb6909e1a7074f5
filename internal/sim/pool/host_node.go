package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// wallStart is the instant 0 on the calendar, unless the config says otherwise.
const wallStart = 1_800_000_000

// bootOffset is how long hosts are up at the instant 0: an instant of CLOCK_BOOTTIME that
// is 0 often means that there is none.
const bootOffset = time.Hour

// daemon is what a daemon does.
type daemon interface {
	start()                               // from what is on its disk
	stop()                                // it dies: only its disk is left
	acceptStream(s *daemonStream, m any)  // somebody opens a stream with that message
	handleMessage(s *daemonStream, m any) // a message on one
	streamBroken(s *daemonStream)         // a stream has ended, or could not be opened
	handleDatagram(from *hostNode, m any)
	writeDone(number uint64) // what was written is safe
	timerFired(a *daemonTimer)
	handleReport(m any) // of a starter
	check()
	failpoints() []string
}

// hostNode is a host with one daemon that counts, and what a fault can do to it.
type hostNode struct {
	pool       *Pool
	id         int32
	name       string
	part       daemon
	daemonLife uint32 // of the daemon
	isUp       bool

	hostLife   uint32        // life of the host
	isOff      bool          // the host is
	offUntil   time.Duration // until then at least
	bootedAt   time.Duration // when CLOCK_BOOTTIME was 0
	wallOffset time.Duration // by which the wall clock is ahead
	downUntil  time.Duration // the daemon is, until then at least

	stalledUntil   time.Duration // it stands still until then
	isAsleep       time.Duration // the whole host does
	eventDelay     time.Duration // which each event takes
	slowUntil      time.Duration
	deferredEvents []eventloop.PlannedEvent
	wakeVersion    uint64 // version of the wake that is planned

	writeDelay, slowWriteUntil time.Duration // that each write takes longer
	diskFullUntil              time.Duration // until when the disk is
	tornWrite                  bool          // the write that is under way when it dies is on disk all the same

	streams map[uint64]*daemonStream
}

func (p *Pool) newNode(name string, of daemon) *hostNode {
	n := &hostNode{pool: p, id: int32(len(p.nodes)), name: name, part: of, bootedAt: -bootOffset,
		streams: map[uint64]*daemonStream{}}
	p.nodes = append(p.nodes, n)
	p.byName[name] = n
	return n
}

// similarUnusedName is a name that no machine has, as like the given one as may be.
func (p *Pool) similarUnusedName(name string) string {
	for slices.ContainsFunc(p.cfg.Machines, func(m MachineConfig) bool { return m.Name == name }) {
		name += "x"
	}
	return name
}

// wallTime is what the wall clock shows, and boot what CLOCK_BOOTTIME does.
func (n *hostNode) wallTime() time.Time {
	return clockReading(n.pool.cfg.StartTime.Add(n.pool.loop.Now()+n.wallOffset), n.bootTime())
}

func (n *hostNode) bootTime() time.Duration { return n.pool.loop.Now() - n.bootedAt }

// simTime is when an instant is, as time.Until has it: by the clock that nobody sets if
// it has that, or else when the clock on the wall shows it.
func (n *hostNode) simTime(at time.Time) time.Duration {
	return n.pool.loop.Now() + at.Sub(n.wallTime())
}

// scheduleEvent has an event of the daemon happen.
func (n *hostNode) scheduleEvent(at time.Duration, kind uint8, number uint64, with any) {
	n.pool.loop.Schedule(eventloop.PlannedEvent{At: at, Place: n.id, Kind: kind, Generation: n.daemonLife,
		Number: number, Payload: with})
}

// start begins a life of the daemon.
func (n *hostNode) start() {
	if n.isUp || n.isOff || n.pool.loop.Now() < n.downUntil {
		return
	}
	n.isUp = true
	n.part.start()
}

// kill ends it: what is on its way to it is lost, and only its disk is left.
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

// killAndRestart is die with a master who starts the daemon again.
func (n *hostNode) killAndRestart() {
	n.kill()
	n.restartAfter(n.pool.cfg.Times.Restart)
}

// nextDaemonTime is when the daemon can do something next, if that is not now.
func (n *hostNode) nextDaemonTime() time.Duration { return max(n.stalledUntil, n.isAsleep) }

// nextRunnable is when something of the host can happen next: what is not the daemon's
// goes on while that stands still.
func (n *hostNode) nextRunnable() time.Duration {
	if n.isAsleep > n.pool.loop.Now() {
		return n.isAsleep
	}
	return n.stalledUntil
}

// runDaemonEvent lets an event of the daemon happen, or keeps it while the daemon stands
// still.
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

// runDeferred has what has waited happen, first what is the host's; and all of it, unless
// each takes its time.
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

// runEvent lets an event happen to a daemon that can do something.
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
		n.pool.tryOpen(e.Payload.(*daemonStream))
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

// runHostEvent lets an event of the host's happen. While the host sleeps nothing does.
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

// hostProcess is what lives beside a daemon, and knows what is due.
type hostProcess interface{ runDue(number uint64) }

// daemonTimer is something that a daemon does when it is time. One that comes early does
// no harm.
type daemonTimer struct {
	at      time.Duration
	version uint64
	set     bool
}

// setTimer sees to it that one comes by an instant.
func (n *hostNode) setTimer(a *daemonTimer, at time.Duration) {
	if at = max(at, n.pool.loop.Now()); a.set && a.at <= at {
		return
	}
	a.at, a.set = at, true
	a.version++
	n.scheduleEvent(at, evTick, a.version, a)
}

// writeTime is how long a write takes now, and ok whether it will succeed.
func (n *hostNode) writeTime() (takes time.Duration, ok bool) {
	now, t := n.pool.loop.Now(), &n.pool.cfg.Times
	takes = n.pool.rand.Between(t.Write, t.WriteMax)
	if n.slowWriteUntil > now {
		takes += n.writeDelay
	}
	return takes, n.diskFullUntil <= now
}
