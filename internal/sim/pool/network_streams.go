package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// What the connections of a real pool do (packages internal/rpc and net).
const (
	silenceTimeout  = 30 * time.Second // after which whoever hears nothing gives up (pings after 20, and waits for 10)
	connectTime     = 5 * time.Second  // for a connection to be made
	maxDialInterval = 2 * time.Second  // the longest time between two tries to connect
	minRetry        = 20 * time.Millisecond
	maxRetry        = 2 * time.Second
	maxRetransmit   = 3 * time.Second // the longest time after a cut is mended until the transport tries again
	stableSession   = maxRetry        // one that has lasted so long is none that breaks at once
)

// networkState is what lies between the nodes.
type networkState struct {
	streams   uint64
	links     map[[2]int32]*nodeLink        // those that something was done to
	takeovers map[*hostNode]addressTakeover // the nodes at whose addresses others answer
}

// nodeLink is the way from one node to another.
type nodeLink struct {
	cutUntil   time.Duration // until then nothing comes through
	extraDelay time.Duration // that a message takes longer
	extraUntil time.Duration
}

// daemonStream is a connection between two daemons: it keeps the order, and loses nothing
// until it breaks.
type daemonStream struct {
	serial      uint64
	kind        streamKind
	ends        [2]*hostNode // who opened it, and the other
	daemonLives [2]uint32
	intended    *hostNode // the one at whose address it was opened
	hello       any
	accepted    bool             // the other side has
	closed      bool             // nothing can be sent on it any more, though those at its ends may not know yet
	broken      bool             // what is on its way is lost
	lastArrival [2]time.Duration // when the last parcel that was sent in this direction arrives
	stalled     [2][]*packet
	endState    [2]any // what it means to those at its ends
}

// streamKind is what is spoken of on a stream.
type streamKind uint8

const (
	sessionStream     streamKind = iota // schedd to startd
	grantStream                         // schedd to negotiator
	leaderStream                        // schedd to negotiator: who leads
	machineStream                       // startd to collector
	consensusDatagram                   // no stream: between replicas
)

// packet is one message on its way.
type packet struct {
	stream    *daemonStream
	from      *hostNode // of a datagram
	direction int
	message   any
	// it has come as far as the daemon, which stands still: that will read it first, and
	// then that the stream has ended
	arrived bool
}

// addressTakeover is who answers at the address of another node, and until when.
type addressTakeover struct {
	node  *hostNode
	until time.Duration
}

// answeringNode is the node that answers at the address of one.
func (p *Pool) answeringNode(n *hostNode) *hostNode {
	if t, ok := p.net.takeovers[n]; ok && t.until > p.loop.Now() {
		return t.node
	}
	return n
}

// linkBetween is the link from one node to another; nil: nothing was done to it.
func (p *Pool) linkBetween(from, to *hostNode) *nodeLink {
	return p.net.links[[2]int32{from.id, to.id}]
}

func (p *Pool) isCut(from, to *hostNode) bool {
	l := p.linkBetween(from, to)
	return l != nil && l.cutUntil > p.loop.Now()
}

// messageDelay is how long a message is on its way.
func (p *Pool) messageDelay(from, to *hostNode) time.Duration {
	d := p.rand.Between(p.cfg.Times.Message, p.cfg.Times.MessageMax)
	if l := p.linkBetween(from, to); l != nil && l.extraUntil > p.loop.Now() {
		d += l.extraDelay
	}
	return d
}

// openStream begins a stream; opened or broken follows.
func (p *Pool) openStream(from, to *hostNode, of streamKind, hello, with any) *daemonStream {
	p.net.streams++
	s := &daemonStream{serial: p.net.streams, kind: of, ends: [2]*hostNode{from, to}, intended: to, hello: hello}
	s.daemonLives[0], s.endState[0] = from.daemonLife, with
	from.streams[s.serial] = s
	p.tryOpen(s)
	return s
}

// tryOpen sends what opens a stream. While that does not come through it is tried again.
func (p *Pool) tryOpen(s *daemonStream) {
	if s.closed || s.accepted {
		return
	}
	if s.kind == sessionStream {
		s.ends[1] = p.answeringNode(s.intended)
	}
	from, to := s.ends[0], s.ends[1]
	if p.isCut(from, to) || p.isCut(to, from) || to.isOff {
		from.scheduleEvent(p.loop.Now()+p.rand.Between(maxDialInterval/2, maxDialInterval), evOpen, s.serial, s)
		return
	}
	at := p.loop.Now() + 2*p.messageDelay(from, to)
	s.daemonLives[1] = to.daemonLife
	s.lastArrival[0] = at
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Place: to.id, Kind: evDeliver, Generation: to.daemonLife,
		Number: s.serial, Payload: &packet{stream: s, message: s.hello}})
}

// sendOn puts a message on a stream, from that end.
func (p *Pool) sendOn(s *daemonStream, end int, m any) {
	if s.closed {
		return
	}
	c := &packet{stream: s, direction: end, message: m}
	if p.isCut(s.ends[end], s.ends[1-end]) || len(s.stalled[end]) > 0 {
		s.stalled[end] = append(s.stalled[end], c)
		return
	}
	p.schedulePacket(c, 0)
}

// schedulePacket has a parcel arrive, behind those before it.
func (p *Pool) schedulePacket(c *packet, after time.Duration) {
	s, to := c.stream, c.stream.ends[1-c.direction]
	at := max(p.loop.Now()+after+p.messageDelay(s.ends[c.direction], to), s.lastArrival[c.direction])
	s.lastArrival[c.direction] = at
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Place: to.id, Kind: evDeliver,
		Generation: s.daemonLives[1-c.direction], Number: s.serial, Payload: c})
}

// sendDatagram sends what may be lost.
func (p *Pool) sendDatagram(from, to *hostNode, m any) {
	if p.isCut(from, to) {
		return
	}
	p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + p.messageDelay(from, to), Place: to.id, Kind: evDeliver,
		Generation: to.daemonLife, Payload: &packet{from: from, message: m}})
}

// deliver hands a parcel over.
func (c *packet) deliver(n *hostNode) {
	s := c.stream
	switch {
	case s == nil:
		n.part.handleDatagram(c.from, c.message)
	case s.broken && !c.arrived:
	case c.direction == 0 && !s.accepted && s.closed:
	case c.direction == 0 && !s.accepted:
		s.accepted = true
		n.streams[s.serial] = s
		n.part.acceptStream(s, c.message)
	case n.streams[s.serial] == s:
		n.part.handleMessage(s, c.message)
	}
}

// returnToSender is what becomes of a parcel for a daemon that is not there, or another
// than was meant: whoever sent it hears so.
func (c *packet) returnToSender(n *hostNode) {
	if c.stream != nil && !c.stream.closed {
		n.pool.breakStream(c.stream, n)
	}
}

// closeStream ends a stream from one of its ends; the other hears of it when it has heard
// all that was sent before.
func (p *Pool) closeStream(s *daemonStream, end int) {
	n := s.ends[end]
	delete(n.streams, s.serial)
	if s.closed {
		return
	}
	s.closed = true
	other := s.ends[1-end]
	p.reportClosed(s, other, max(p.loop.Now()+p.messageDelay(n, other), s.lastArrival[end]))
}

// reportClosed has one end hear that a stream is over.
func (p *Pool) reportClosed(s *daemonStream, n *hostNode, at time.Duration) {
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Place: n.id, Kind: evStreamDown, Generation: n.daemonLife,
		Number: s.serial, Payload: s})
}

// breakStream breaks a stream: what is on its way is lost. gone is the end that does not
// need to be told, nil for none.
func (p *Pool) breakStream(s *daemonStream, gone *hostNode) {
	if s.closed {
		return
	}
	s.closed, s.broken = true, true
	for i, n := range s.ends {
		if n == gone {
			delete(n.streams, s.serial)
			continue
		}
		other := s.ends[1-i]
		at := p.loop.Now() + p.messageDelay(other, n)
		if p.isCut(other, n) || other.isOff {
			at = p.loop.Now() + silenceTimeout
		}
		p.reportClosed(s, n, at)
	}
}

// breakStreams breaks all streams of a daemon that has died. Its kernel says so to the
// others, if it is there and they can hear it.
func (n *hostNode) breakStreams() {
	for _, serial := range sortedKeys(n.streams) {
		n.pool.breakStream(n.streams[serial], n)
	}
	clear(n.streams)
}

// streamsBetween lists the streams between two nodes, in order.
func (p *Pool) streamsBetween(a, b *hostNode) []*daemonStream {
	var all []*daemonStream
	for _, serial := range sortedKeys(a.streams) {
		if s := a.streams[serial]; slices.Contains(s.ends[:], b) {
			all = append(all, s)
		}
	}
	return all
}

// resumeAfterCut has what a cut has kept go on its way.
func (p *Pool) resumeAfterCut(from, to *hostNode) {
	for _, s := range p.streamsBetween(from, to) {
		end := slices.Index(s.ends[:], from)
		stalled := s.stalled[end]
		s.stalled[end] = nil
		after := p.rand.Between(0, maxRetransmit)
		for _, c := range stalled {
			if !s.closed {
				p.schedulePacket(c, after)
			}
		}
	}
}

// reconnectBackoff is how long to wait before a stream is opened again that has lasted
// for so long.
type reconnectBackoff struct{ wait time.Duration }

func (b *reconnectBackoff) nextDelay(lasted time.Duration) time.Duration {
	if lasted > stableSession || b.wait == 0 {
		b.wait = minRetry
	}
	wait := b.wait
	b.wait = min(2*b.wait, maxRetry)
	return wait
}
