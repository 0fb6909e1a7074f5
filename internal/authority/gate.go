package authority

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on those who have not shown a certificate.
const (
	maxStrangers  = 256 // connections of all
	maxPerAddress = 16  // of one address, or one IPv6 network
)

// gate is a listener that bounds how many strangers are connected. When there are too many, of all or of one address, the one that has been there for longest
// is hung up on: an honest one needs a moment only, so a flood of those that say nothing does not keep it out. Who shows a certificate stops counting.
type gate struct {
	net.Listener
	dropped func(from netip.Addr)

	mu        sync.Mutex
	strangers *list.List // of *guest, the oldest first
	from      map[netip.Addr]*list.List
}

// guest is a connection that is counted.
type guest struct {
	net.Conn
	gate  *gate
	addr  netip.Addr
	place [2]*list.Element // among all, and of its address; nil: it does not count
}

func newGate(l net.Listener, dropped func(netip.Addr)) *gate {
	return &gate{Listener: l, dropped: dropped, strangers: list.New(), from: map[netip.Addr]*list.List{}}
}

func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return g.admit(conn), nil
}

// admit counts a connection, and hangs up on another one where that is too many.
func (g *gate) admit(conn net.Conn) *guest {
	c := &guest{Conn: conn, gate: g, addr: rpc.Origin(conn.RemoteAddr())}
	g.mu.Lock()
	var victim *guest
	if same := g.from[c.addr]; same != nil && same.Len() >= maxPerAddress {
		victim = same.Front().Value.(*guest)
	} else if g.strangers.Len() >= maxStrangers {
		victim = g.strangers.Front().Value.(*guest)
	}
	if victim != nil {
		g.uncount(victim)
	}
	if g.from[c.addr] == nil {
		g.from[c.addr] = list.New()
	}
	c.place = [2]*list.Element{g.strangers.PushBack(c), g.from[c.addr].PushBack(c)}
	g.mu.Unlock()
	if victim != nil {
		victim.Conn.Close()
		g.dropped(victim.addr)
	}
	return c
}

// uncount is called with the lock held.
func (g *gate) uncount(c *guest) {
	if c.place[0] == nil {
		return
	}
	g.strangers.Remove(c.place[0])
	same := g.from[c.addr]
	same.Remove(c.place[1])
	if same.Len() == 0 {
		delete(g.from, c.addr)
	}
	c.place = [2]*list.Element{}
}

// known stops counting a connection: its peer has shown a certificate.
func (c *guest) known() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.uncount(c)
}

// Close closes the connection.
func (c *guest) Close() error {
	c.known()
	return c.Conn.Close()
}
