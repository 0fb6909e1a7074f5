package rpc

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// AnonymousLimiter bounds the anonymous connections of a server: in all, and of one
// address (LimitKey). Where there are too many, the oldest one makes room: an honest peer
// needs a moment only, so a flood of silent ones does not keep it out.
type AnonymousLimiter struct {
	maxConns, maxPerAddr int

	mu     sync.Mutex
	conns  *list.List                // of *AnonymousConn, the oldest first
	byAddr map[netip.Addr]*list.List // the same, by address
}

// AnonymousConn is a connection of a peer that has not shown who it is.
type AnonymousConn struct {
	net.Conn
	Addr               netip.Addr
	limiter            *AnonymousLimiter
	listElem, addrElem *list.Element // nil: it does not count any more
}

// NewAnonymousLimiter makes a limiter with its two bounds.
func NewAnonymousLimiter(maxConns, maxPerAddr int) *AnonymousLimiter {
	return &AnonymousLimiter{maxConns: maxConns, maxPerAddr: maxPerAddr, conns: list.New(),
		byAddr: map[netip.Addr]*list.List{}}
}

// Add counts a connection. The victim, if there is one, is for the caller to close: it
// does not count any more.
func (l *AnonymousLimiter) Add(conn net.Conn) (c, victim *AnonymousConn) {
	c = &AnonymousConn{Conn: conn, Addr: LimitKey(conn.RemoteAddr()), limiter: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if same := l.byAddr[c.Addr]; same != nil && same.Len() >= l.maxPerAddr {
		victim = same.Front().Value.(*AnonymousConn)
	} else if l.conns.Len() >= l.maxConns {
		victim = l.conns.Front().Value.(*AnonymousConn)
	}
	if victim != nil {
		l.remove(victim)
	}
	if l.byAddr[c.Addr] == nil {
		l.byAddr[c.Addr] = list.New()
	}
	c.listElem, c.addrElem = l.conns.PushBack(c), l.byAddr[c.Addr].PushBack(c)
	return c, victim
}

// remove is called with the lock held.
func (l *AnonymousLimiter) remove(c *AnonymousConn) {
	if c.listElem == nil {
		return
	}
	l.conns.Remove(c.listElem)
	same := l.byAddr[c.Addr]
	same.Remove(c.addrElem)
	if same.Len() == 0 {
		delete(l.byAddr, c.Addr)
	}
	c.listElem, c.addrElem = nil, nil
}

// StopCounting ends the counting of a connection, as its peer is known now or has left.
func (c *AnonymousConn) StopCounting() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.remove(c)
}

// Close closes the connection and stops counting it.
func (c *AnonymousConn) Close() error {
	c.StopCounting()
	return c.Conn.Close()
}
