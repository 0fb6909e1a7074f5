package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// Times of real connections (packages internal/rpc and net).
const (
	silenceTimeout  = 30 * time.Second // silence after which a side gives up (pings after 20 s, and waits 10 s more)
	connectTime     = 5 * time.Second  // for a connection to be made
	maxDialInterval = 2 * time.Second  // longest time between two attempts to connect
	minRetry        = 20 * time.Millisecond
	maxRetry        = 2 * time.Second
	maxRetransmit   = 3 * time.Second // longest time after a partition until the transport retransmits
	stableSession   = maxRetry        // life of a session after which the backoff starts anew
)

// networkState is the state of the network between the nodes.
type networkState struct {
	streams   uint64
	links     map[[2]int32]*nodeLink        // links with a fault
	takeovers map[*hostNode]addressTakeover // by node: who answers at its address
}

// nodeLink is the link from one node to another.
type nodeLink struct {
	cutUntil   time.Duration // until when nothing gets through
	extraDelay time.Duration // added delay of each message
	extraUntil time.Duration
}

// daemonStream is a connection between two daemons. It preserves order, and loses nothing
// until it breaks.
type daemonStream struct {
	serial      uint64
	kind        streamKind
	ends        [2]*hostNode // the opener and the other side
	daemonLives [2]uint32
	intended    *hostNode // the node at whose address it was opened
	hello       any
	accepted    bool             // the other side has accepted it
	closed      bool             // nothing more can be sent, though the ends may not know yet
	broken      bool             // what is in transit is lost
	lastArrival [2]time.Duration // by direction: arrival of the last packet sent
	stalled     [2][]*packet
	endState    [2]any // by end: the daemon's own state of the stream
}

// streamKind is the protocol of a stream.
type streamKind uint8

const (
	sessionStream     streamKind = iota // schedd to startd
	grantStream                         // schedd to negotiator
	leaderStream                        // schedd to negotiator: who leads
	machineStream                       // startd to collector
	consensusDatagram                   // no stream: between replicas
)

// packet is a message in transit.
type packet struct {
	stream    *daemonStream
	from      *hostNode // sender of a datagram
	direction int
	message   any
	// it has arrived at a stopped daemon, which reads it before the end of the stream
	arrived bool
}

// addressTakeover says which node answers at another one's address, and until when.
type addressTakeover struct {
	node  *hostNode
	until time.Duration
}

// answeringNode returns the node that answers at a node's address.
func (p networkStreams) answeringNode(n *hostNode) *hostNode {
	if t, ok := p.net.takeovers[n]; ok && t.until > p.loop.Now() {
		return t.node
	}
	return n
}

// linkBetween returns the link from one node to another; nil if it has no fault.
func (p networkStreams) linkBetween(from, to *hostNode) *nodeLink {
	return p.net.links[[2]int32{from.id, to.id}]
}

func (p networkStreams) isCut(from, to *hostNode) bool {
	l := p.linkBetween(from, to)
	return l != nil && l.cutUntil > p.loop.Now()
}

// messageDelay returns how long a message is in transit.
func (p networkStreams) messageDelay(from, to *hostNode) time.Duration {
	d := p.rand.Between(p.cfg.Times.Message, p.cfg.Times.MessageMax)
	if l := p.linkBetween(from, to); l != nil && l.extraUntil > p.loop.Now() {
		d += l.extraDelay
	}
	return d
}

// openStream begins to open a stream. The opener later gets a message or streamBroken.
func (p networkStreams) openStream(from, to *hostNode, of streamKind, hello, with any) *daemonStream {
	p.net.streams++
	s := &daemonStream{serial: p.net.streams, kind: of, ends: [2]*hostNode{from, to}, intended: to, hello: hello}
	s.daemonLives[0], s.endState[0] = from.daemonLife, with
	from.streams[s.serial] = s
	p.tryOpen(s)
	return s
}

// tryOpen sends the opening message, and retries while it does not get through.
func (p networkStreams) tryOpen(s *daemonStream) {
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

// sendOn sends a message on a stream from one end.
func (p networkStreams) sendOn(s *daemonStream, end int, m any) {
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

// schedulePacket plans the arrival of a packet behind the earlier ones of its direction.
func (p networkStreams) schedulePacket(c *packet, after time.Duration) {
	s, to := c.stream, c.stream.ends[1-c.direction]
	at := max(p.loop.Now()+after+p.messageDelay(s.ends[c.direction], to), s.lastArrival[c.direction])
	s.lastArrival[c.direction] = at
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Place: to.id, Kind: evDeliver,
		Generation: s.daemonLives[1-c.direction], Number: s.serial, Payload: c})
}

// sendDatagram sends a message that may be lost.
func (p networkStreams) sendDatagram(from, to *hostNode, m any) {
	if p.isCut(from, to) {
		return
	}
	p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + p.messageDelay(from, to), Place: to.id, Kind: evDeliver,
		Generation: to.daemonLife, Payload: &packet{from: from, message: m}})
}

// deliver delivers a packet.
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

// returnToSender breaks the stream of a packet whose receiving daemon is gone or
// restarted.
func (c *packet) returnToSender(n *hostNode) {
	if c.stream != nil && !c.stream.closed {
		n.pool.network().breakStream(c.stream, n)
	}
}

// closeStream closes a stream from one end. The other end learns it after everything that
// was sent before.
func (p networkStreams) closeStream(s *daemonStream, end int) {
	n := s.ends[end]
	delete(n.streams, s.serial)
	if s.closed {
		return
	}
	s.closed = true
	other := s.ends[1-end]
	p.reportClosed(s, other, max(p.loop.Now()+p.messageDelay(n, other), s.lastArrival[end]))
}

// reportClosed plans the report of a stream's end to one of its sides.
func (p networkStreams) reportClosed(s *daemonStream, n *hostNode, at time.Duration) {
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Place: n.id, Kind: evStreamDown, Generation: n.daemonLife,
		Number: s.serial, Payload: s})
}

// breakStream breaks a stream: what is in transit is lost. gone is the end that needs no
// report, nil for none.
func (p networkStreams) breakStream(s *daemonStream, gone *hostNode) {
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

// breakStreams breaks all streams of a daemon that has died. Its kernel informs the peers
// if it is up and reachable.
func (n *hostNode) breakStreams() {
	for _, serial := range sortedKeys(n.streams) {
		n.pool.network().breakStream(n.streams[serial], n)
	}
	clear(n.streams)
}

// streamsBetween lists the streams between two nodes, in order.
func (p networkStreams) streamsBetween(a, b *hostNode) []*daemonStream {
	var all []*daemonStream
	for _, serial := range sortedKeys(a.streams) {
		if s := a.streams[serial]; slices.Contains(s.ends[:], b) {
			all = append(all, s)
		}
	}
	return all
}

// resumeAfterCut delivers the messages that waited for the end of a partition.
func (p networkStreams) resumeAfterCut(from, to *hostNode) {
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

// reconnectBackoff computes the wait before a stream is reopened, from how long it
// lasted.
type reconnectBackoff struct{ wait time.Duration }

func (b *reconnectBackoff) nextDelay(lasted time.Duration) time.Duration {
	if lasted > stableSession || b.wait == 0 {
		b.wait = minRetry
	}
	wait := b.wait
	b.wait = min(2*b.wait, maxRetry)
	return wait
}
