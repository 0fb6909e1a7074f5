package authority

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on clients that have not shown a certificate.
const (
	maxAnonymous  = 256 // connections of all such clients
	maxPerAddress = 16  // connections of one address, or of one IPv6 network
)

// connLimiter is a listener that bounds the anonymous connections. If there are too many,
// in total or from one address, it closes the oldest: an honest client needs its
// connection only for a moment, so a flood of silent ones does not lock it out. A
// connection that shows a certificate no longer counts.
type connLimiter struct {
	net.Listener
	onDrop func(from netip.Addr)

	mu     sync.Mutex
	conns  *list.List // of *countedConn, oldest first
	byAddr map[netip.Addr]*list.List
}

// countedConn is a connection that is counted.
type countedConn struct {
	net.Conn
	limiter   *connLimiter
	addr      netip.Addr
	listElems [2]*list.Element // in the lists of all and of its address; nil: it does not count
}

func newConnLimiter(l net.Listener, dropped func(netip.Addr)) *connLimiter {
	return &connLimiter{Listener: l, onDrop: dropped, conns: list.New(), byAddr: map[netip.Addr]*list.List{}}
}

func (g *connLimiter) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return g.addConn(conn), nil
}

// addConn counts a connection, and closes the oldest if there are too many.
func (g *connLimiter) addConn(conn net.Conn) *countedConn {
	c := &countedConn{Conn: conn, limiter: g, addr: rpc.LimitKey(conn.RemoteAddr())}
	g.mu.Lock()
	var victim *countedConn
	if same := g.byAddr[c.addr]; same != nil && same.Len() >= maxPerAddress {
		victim = same.Front().Value.(*countedConn)
	} else if g.conns.Len() >= maxAnonymous {
		victim = g.conns.Front().Value.(*countedConn)
	}
	if victim != nil {
		g.removeConn(victim)
	}
	if g.byAddr[c.addr] == nil {
		g.byAddr[c.addr] = list.New()
	}
	c.listElems = [2]*list.Element{g.conns.PushBack(c), g.byAddr[c.addr].PushBack(c)}
	g.mu.Unlock()
	if victim != nil {
		victim.Conn.Close()
		g.onDrop(victim.addr)
	}
	return c
}

// removeConn is called with the lock held.
func (g *connLimiter) removeConn(c *countedConn) {
	if c.listElems[0] == nil {
		return
	}
	g.conns.Remove(c.listElems[0])
	same := g.byAddr[c.addr]
	same.Remove(c.listElems[1])
	if same.Len() == 0 {
		delete(g.byAddr, c.addr)
	}
	c.listElems = [2]*list.Element{}
}

// stopCounting stops counting a connection, because its peer has shown a certificate.
func (c *countedConn) stopCounting() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.removeConn(c)
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.stopCounting()
	return c.Conn.Close()
}
