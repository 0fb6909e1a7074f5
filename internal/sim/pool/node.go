package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/kernel"
)

// epoch is the instant 0 on the calendar, unless the config says otherwise.
const epoch = 1_800_000_000

// uptime is how long hosts are up at the instant 0: an instant of CLOCK_BOOTTIME that is 0 often means that there is none.
const uptime = time.Hour

// part is what a daemon does.
type part interface {
	start()                   // from what is on its disk
	stop()                    // it dies: only its disk is left
	accept(s *stream, m any)  // somebody opens a stream with that message
	receive(s *stream, m any) // a message on one
	broken(s *stream)         // a stream has ended, or could not be opened
	datagram(from *node, m any)
	disk(number uint64) // what was written is safe
	alarmed(a *alarm)
	news(m any) // of a starter
	check()
	points() []string
}

// node is a host with one daemon that counts, and what a fault can do to it.
type node struct {
	p    *Pool
	id   int32
	name string
	part part
	life uint32 // of the daemon
	up   bool

	host     uint32        // life of the host
	off      bool          // the host is
	dark     time.Duration // until then at least
	bootedAt time.Duration // when CLOCK_BOOTTIME was 0
	wall     time.Duration // by which the wall clock is ahead
	down     time.Duration // the daemon is, until then at least

	still    time.Duration // it stands still until then
	asleep   time.Duration // the whole host does
	slow     time.Duration // which each event takes
	slowTill time.Duration
	waiting  []kernel.Event
	waking   uint64 // version of the wake that is planned

	write, writeTill time.Duration // that each write takes longer
	full             time.Duration // until when the disk is
	torn             bool          // the write that is under way when it dies is on disk all the same

	streams map[uint64]*stream
}

func (p *Pool) newNode(name string, of part) *node {
	n := &node{p: p, id: int32(len(p.nodes)), name: name, part: of, bootedAt: -uptime, streams: map[uint64]*stream{}}
	p.nodes = append(p.nodes, n)
	p.byName[name] = n
	return n
}

// unlike is a name that no machine has, as like the given one as may be.
func (p *Pool) unlike(name string) string {
	for slices.ContainsFunc(p.cfg.Machines, func(m Machine) bool { return m.Name == name }) {
		name += "x"
	}
	return name
}

// now is what the wall clock shows, and boot what CLOCK_BOOTTIME does.
func (n *node) now() time.Time { return reading(n.p.cfg.Began.Add(n.p.k.Now()+n.wall), n.boot()) }

func (n *node) boot() time.Duration { return n.p.k.Now() - n.bootedAt }

// truth is when an instant is, as time.Until has it: by the clock that nobody sets if it has that, or else when the clock on the wall shows it.
func (n *node) truth(at time.Time) time.Duration { return n.p.k.Now() + at.Sub(n.now()) }

// plan has an event of the daemon happen.
func (n *node) plan(at time.Duration, kind uint8, number uint64, with any) {
	n.p.k.Plan(kernel.Event{At: at, Place: n.id, Kind: kind, Life: n.life, Number: number, With: with})
}

// start begins a life of the daemon.
func (n *node) start() {
	if n.up || n.off || n.p.k.Now() < n.down {
		return
	}
	n.up = true
	n.part.start()
}

// die ends it: what is on its way to it is lost, and only its disk is left.
func (n *node) die() {
	if !n.up {
		return
	}
	n.part.stop()
	n.up = false
	n.life++
	waiting := n.waiting
	n.still, n.waiting = 0, nil
	n.hangUp()
	for _, e := range waiting {
		switch {
		case e.Kind == evDeliver:
			e.With.(*parcel).miss(n)
		case e.Kind == evTask:
			n.waiting = append(n.waiting, e)
		}
	}
	if len(n.waiting) > 0 {
		n.wakeAt(n.stirs())
	}
}

// fail is die with a master who starts the daemon again.
func (n *node) fail() {
	n.die()
	n.back(n.p.cfg.Times.Restart)
}

// until is when the daemon can do something next, if that is not now.
func (n *node) until() time.Duration { return max(n.still, n.asleep) }

// stirs is when something of the host can happen next: what is not the daemon's goes on while that stands still.
func (n *node) stirs() time.Duration {
	if n.asleep > n.p.k.Now() {
		return n.asleep
	}
	return n.still
}

// ofDaemon lets an event of the daemon happen, or keeps it while the daemon stands still.
func (n *node) ofDaemon(e kernel.Event) {
	if e.Life != n.life || !n.up {
		if e.Kind == evDeliver {
			e.With.(*parcel).miss(n)
		}
		return
	}
	if until := n.until(); until > n.p.k.Now() || len(n.waiting) > 0 {
		n.waiting = append(n.waiting, e)
		if e.Kind == evDeliver {
			e.With.(*parcel).here = true
		}
		n.wakeAt(n.stirs())
		return
	}
	n.happen(e)
}

func (n *node) wakeAt(at time.Duration) {
	n.waking++
	n.p.k.Plan(kernel.Event{At: at, Place: n.id, Kind: evWake, Number: n.waking})
}

// wake has what has waited happen, first what is the host's; and all of it, unless each takes its time.
func (n *node) wake(version uint64) {
	if version != n.waking {
		return
	}
	if n.asleep > n.p.k.Now() {
		n.wakeAt(n.asleep)
		return
	}
	ofHost := func(e kernel.Event) bool { return e.Kind == evTask }
	for i := slices.IndexFunc(n.waiting, ofHost); i >= 0; i = slices.IndexFunc(n.waiting, ofHost) {
		e := n.waiting[i]
		n.waiting = slices.Delete(n.waiting, i, i+1)
		n.ofHost(e)
	}
	for len(n.waiting) > 0 && n.until() <= n.p.k.Now() {
		e := n.waiting[0]
		n.waiting = n.waiting[1:]
		if e.Life == n.life && n.up {
			n.happen(e)
		}
	}
	if len(n.waiting) > 0 {
		n.wakeAt(n.stirs())
	}
}

// happen lets an event happen to a daemon that can do something.
func (n *node) happen(e kernel.Event) {
	switch e.Kind {
	case evDeliver:
		e.With.(*parcel).arrive(n)
	case evDown:
		if s := e.With.(*stream); n.streams[s.serial] == s {
			delete(n.streams, s.serial)
			n.part.broken(s)
		}
	case evOpen:
		n.p.try(e.With.(*stream))
	case evDisk:
		n.part.disk(e.Number)
	case evTick:
		if a := e.With.(*alarm); a.version == e.Number {
			a.set = false
			n.part.alarmed(a)
		}
	case evNews:
		n.part.news(e.With)
	}
	if n.slowTill > n.p.k.Now() {
		n.still = max(n.still, n.p.k.Now()+n.slow)
	}
}

// ofHost lets an event of the host's happen. While the host sleeps nothing does.
func (n *node) ofHost(e kernel.Event) {
	if e.Life != n.host || n.off {
		return
	}
	if n.asleep > n.p.k.Now() {
		n.waiting = append(n.waiting, e)
		n.wakeAt(n.asleep)
		return
	}
	e.With.(hosted).due(e.Number)
}

// hosted is what lives beside a daemon, and knows what is due.
type hosted interface{ due(number uint64) }

// alarm is something that a daemon does when it is time. One that comes early does no harm.
type alarm struct {
	at      time.Duration
	version uint64
	set     bool
}

// alarm sees to it that one comes by an instant.
func (n *node) alarm(a *alarm, at time.Duration) {
	if at = max(at, n.p.k.Now()); a.set && a.at <= at {
		return
	}
	a.at, a.set = at, true
	a.version++
	n.plan(at, evTick, a.version, a)
}

// flush is how long a write takes now, and ok whether it will succeed.
func (n *node) flush() (takes time.Duration, ok bool) {
	now, t := n.p.k.Now(), &n.p.cfg.Times
	takes = n.p.rand.Between(t.Write, t.WriteMost)
	if n.writeTill > now {
		takes += n.write
	}
	return takes, n.full <= now
}
