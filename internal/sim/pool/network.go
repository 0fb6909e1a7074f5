package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/kernel"
)

// What the connections of a real pool do (packages internal/rpc and net).
const (
	silent      = 30 * time.Second // after which whoever hears nothing gives up (pings after 20, and waits for 10)
	handshake   = 5 * time.Second  // for a connection to be made
	lastDial    = 2 * time.Second  // the longest time between two tries to connect
	firstRetry  = 20 * time.Millisecond
	lastRetry   = 2 * time.Second
	retransmit  = 3 * time.Second // the longest time after a cut is mended until the transport tries again
	longSession = lastRetry       // one that has lasted so long is none that breaks at once
)

// network is what lies between the nodes.
type network struct {
	streams uint64
	links   map[[2]int32]*link // those that something was done to
	taken   map[*node]taken    // the nodes at whose addresses others answer
}

// link is the way from one node to another.
type link struct {
	cut       time.Duration // until then nothing comes through
	extra     time.Duration // that a message takes longer
	extraTill time.Duration
}

// stream is a connection between two daemons: it keeps the order, and loses nothing until it breaks.
type stream struct {
	serial  uint64
	kind    kind
	ends    [2]*node // who opened it, and the other
	lives   [2]uint32
	meant   *node // the one at whose address it was opened
	hello   any
	taken   bool             // the other side has
	over    bool             // nothing can be sent on it any more, though those at its ends may not know yet
	broken  bool             // what is on its way is lost
	last    [2]time.Duration // when the last parcel that was sent in this direction arrives
	stalled [2][]*parcel
	with    [2]any // what it means to those at its ends
}

// kind is what is spoken of on a stream.
type kind uint8

const (
	ofSession   kind = iota // schedd to startd
	ofGrants                // schedd to negotiator
	ofLeaders               // schedd to negotiator: who leads
	ofMachines              // startd to collector
	ofConsensus             // no stream: between replicas
)

// parcel is one message on its way.
type parcel struct {
	on   *stream
	from *node // of a datagram
	dir  int
	m    any
	here bool // it has come as far as the daemon, which stands still: that will read it first, and then that the stream has ended
}

// taken is who answers at the address of another node, and until when.
type taken struct {
	by    *node
	until time.Duration
}

// answers is the node that answers at the address of one.
func (p *Pool) answers(n *node) *node {
	if t, ok := p.net.taken[n]; ok && t.until > p.k.Now() {
		return t.by
	}
	return n
}

// way is the link from one node to another; nil: nothing was done to it.
func (p *Pool) way(from, to *node) *link { return p.net.links[[2]int32{from.id, to.id}] }

func (p *Pool) isCut(from, to *node) bool {
	l := p.way(from, to)
	return l != nil && l.cut > p.k.Now()
}

// takes is how long a message is on its way.
func (p *Pool) takes(from, to *node) time.Duration {
	d := p.rand.Between(p.cfg.Times.Message, p.cfg.Times.MessageMost)
	if l := p.way(from, to); l != nil && l.extraTill > p.k.Now() {
		d += l.extra
	}
	return d
}

// open begins a stream; opened or broken follows.
func (p *Pool) open(from, to *node, of kind, hello, with any) *stream {
	p.net.streams++
	s := &stream{serial: p.net.streams, kind: of, ends: [2]*node{from, to}, meant: to, hello: hello}
	s.lives[0], s.with[0] = from.life, with
	from.streams[s.serial] = s
	p.try(s)
	return s
}

// try sends what opens a stream. While that does not come through it is tried again.
func (p *Pool) try(s *stream) {
	if s.over || s.taken {
		return
	}
	if s.kind == ofSession {
		s.ends[1] = p.answers(s.meant)
	}
	from, to := s.ends[0], s.ends[1]
	if p.isCut(from, to) || p.isCut(to, from) || to.off {
		from.plan(p.k.Now()+p.rand.Between(lastDial/2, lastDial), evOpen, s.serial, s)
		return
	}
	at := p.k.Now() + 2*p.takes(from, to)
	s.lives[1] = to.life
	s.last[0] = at
	p.k.Plan(kernel.Event{At: at, Place: to.id, Kind: evDeliver, Life: to.life, Number: s.serial, With: &parcel{on: s, m: s.hello}})
}

// send puts a message on a stream, from that end.
func (p *Pool) send(s *stream, end int, m any) {
	if s.over {
		return
	}
	c := &parcel{on: s, dir: end, m: m}
	if p.isCut(s.ends[end], s.ends[1-end]) || len(s.stalled[end]) > 0 {
		s.stalled[end] = append(s.stalled[end], c)
		return
	}
	p.post(c, 0)
}

// post has a parcel arrive, behind those before it.
func (p *Pool) post(c *parcel, after time.Duration) {
	s, to := c.on, c.on.ends[1-c.dir]
	at := max(p.k.Now()+after+p.takes(s.ends[c.dir], to), s.last[c.dir])
	s.last[c.dir] = at
	p.k.Plan(kernel.Event{At: at, Place: to.id, Kind: evDeliver, Life: s.lives[1-c.dir], Number: s.serial, With: c})
}

// datagram sends what may be lost.
func (p *Pool) datagram(from, to *node, m any) {
	if p.isCut(from, to) {
		return
	}
	p.k.Plan(kernel.Event{At: p.k.Now() + p.takes(from, to), Place: to.id, Kind: evDeliver, Life: to.life, With: &parcel{from: from, m: m}})
}

// arrive hands a parcel over.
func (c *parcel) arrive(n *node) {
	s := c.on
	switch {
	case s == nil:
		n.part.datagram(c.from, c.m)
	case s.broken && !c.here:
	case c.dir == 0 && !s.taken && s.over:
	case c.dir == 0 && !s.taken:
		s.taken = true
		n.streams[s.serial] = s
		n.part.accept(s, c.m)
	case n.streams[s.serial] == s:
		n.part.receive(s, c.m)
	}
}

// miss is what becomes of a parcel for a daemon that is not there, or another than was meant: whoever sent it hears so.
func (c *parcel) miss(n *node) {
	if c.on != nil && !c.on.over {
		n.p.sever(c.on, n)
	}
}

// hang ends a stream from one of its ends; the other hears of it when it has heard all that was sent before.
func (p *Pool) hang(s *stream, end int) {
	n := s.ends[end]
	delete(n.streams, s.serial)
	if s.over {
		return
	}
	s.over = true
	other := s.ends[1-end]
	p.tellDown(s, other, max(p.k.Now()+p.takes(n, other), s.last[end]))
}

// tellDown has one end hear that a stream is over.
func (p *Pool) tellDown(s *stream, n *node, at time.Duration) {
	p.k.Plan(kernel.Event{At: at, Place: n.id, Kind: evDown, Life: n.life, Number: s.serial, With: s})
}

// sever breaks a stream: what is on its way is lost. gone is the end that does not need to be told, nil for none.
func (p *Pool) sever(s *stream, gone *node) {
	if s.over {
		return
	}
	s.over, s.broken = true, true
	for i, n := range s.ends {
		if n == gone {
			delete(n.streams, s.serial)
			continue
		}
		other := s.ends[1-i]
		at := p.k.Now() + p.takes(other, n)
		if p.isCut(other, n) || other.off {
			at = p.k.Now() + silent
		}
		p.tellDown(s, n, at)
	}
}

// hangUp breaks all streams of a daemon that has died. Its kernel says so to the others, if it is there and they can hear it.
func (n *node) hangUp() {
	for _, serial := range sorted(n.streams) {
		n.p.sever(n.streams[serial], n)
	}
	clear(n.streams)
}

// between lists the streams between two nodes, in order.
func (p *Pool) between(a, b *node) []*stream {
	var all []*stream
	for _, serial := range sorted(a.streams) {
		if s := a.streams[serial]; slices.Contains(s.ends[:], b) {
			all = append(all, s)
		}
	}
	return all
}

// mend has what a cut has kept go on its way.
func (p *Pool) mend(from, to *node) {
	for _, s := range p.between(from, to) {
		end := slices.Index(s.ends[:], from)
		stalled := s.stalled[end]
		s.stalled[end] = nil
		after := p.rand.Between(0, retransmit)
		for _, c := range stalled {
			if !s.over {
				p.post(c, after)
			}
		}
	}
}

// backoff is how long to wait before a stream is opened again that has lasted for so long.
type backoff struct{ wait time.Duration }

func (b *backoff) next(lasted time.Duration) time.Duration {
	if lasted > longSession || b.wait == 0 {
		b.wait = firstRetry
	}
	wait := b.wait
	b.wait = min(2*b.wait, lastRetry)
	return wait
}
