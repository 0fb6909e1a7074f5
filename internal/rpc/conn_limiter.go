package rpc

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// connLimiter counts the connections of one server. Until a handshake is over, its
// connection counts by address; then by peer.
type connLimiter struct {
	maxConns, maxUserConns int // connections in all, and of users
	handshakes             *AnonymousLimiter

	mu    sync.Mutex
	conns map[string]int // of each peer
	total int
	users int
}

func newConnLimiter() *connLimiter {
	var limit unix.Rlimit
	most := 1 << 10
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		most = int(min(limit.Cur, 1<<20))
	}
	most = int(float64(most) * maxConnsFraction)
	return &connLimiter{maxConns: most, maxUserConns: most / 3,
		handshakes: NewAnonymousLimiter(maxHandshakes, maxHandshakesPerAddr), conns: map[string]int{}}
}

// countConn counts a connection of a peer who is known now, or says why there are too
// many. The connection that it returns is counted until it is closed.
func (g *connLimiter) countConn(conn net.Conn, p peer.Peer) (net.Conn, error) {
	if isTrusted(p) {
		return conn, nil
	}
	who := p.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.conns[who] >= maxConnsPerPeer:
		return nil, fmt.Errorf("%s: %w: %d connections at once are the most", who, roost.Exhausted, maxConnsPerPeer)
	case g.total >= g.maxConns || isUser(p) && g.users >= g.maxUserConns:
		return nil, fmt.Errorf("%s: %w: there are %d connections (LimitNOFILE= of the unit says how many there may be)",
			who, roost.Exhausted, g.total)
	}
	g.addConn(who, isUser(p), 1)
	return &countedConn{Conn: conn, onClose: sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.addConn(who, isUser(p), -1)
	})}, nil
}

func (g *connLimiter) addConn(who string, user bool, n int) {
	g.total += n
	if user {
		g.users += n
	}
	if g.conns[who] += n; g.conns[who] == 0 {
		delete(g.conns, who)
	}
}

// isTrusted reports whether a peer is the daemon's own user or root.
func isTrusted(p peer.Peer) bool { return p.Local && p.Plays(peer.Schedd) }

// isUser reports whether a peer is a user, on this host or with a login from elsewhere.
func isUser(p peer.Peer) bool { return p.Local || p.User != "" }

// countedConn is a connection of an identified peer.
type countedConn struct {
	net.Conn
	onClose func()
}

// Close closes the connection and stops counting it.
func (c *countedConn) Close() error {
	c.onClose()
	return c.Conn.Close()
}

// LimitKey returns the key by which unidentified peers are counted. It is the address, or
// for IPv6 the network, because one host can have all of its addresses.
func LimitKey(addr net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(64)
		return network.Addr()
	}
	return ip
}
