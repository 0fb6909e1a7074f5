package rpc

import (
	"container/list"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// gate counts the connections of one server: strangers, whose handshake is not over, by address, and the others by who they are.
type gate struct {
	most, mostUsers int // connections in all, and of users

	mu        sync.Mutex
	strangers *list.List                // *stranger, the oldest first
	from      map[netip.Addr]*list.List // the same, by address
	conns     map[string]int            // of each peer
	all       int
	users     int
}

// stranger is a connection whose handshake is not over.
type stranger struct {
	conn     net.Conn
	addr     netip.Addr
	all, own *list.Element // nil: it is over
}

func newGate() *gate {
	var limit unix.Rlimit
	most := 1 << 10
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		most = int(min(limit.Cur, 1<<20))
	}
	most = int(float64(most) * maxConnsFraction)
	return &gate{most: most, mostUsers: most / 3, strangers: list.New(), from: map[netip.Addr]*list.List{}, conns: map[string]int{}}
}

// enter counts a stranger. Where there are too many, the one who has been at it for longest makes room and is returned: an honest one would be through.
func (g *gate) enter(conn net.Conn) (s, victim *stranger) {
	s = &stranger{conn: conn, addr: Origin(conn.RemoteAddr())}
	g.mu.Lock()
	defer g.mu.Unlock()
	if same := g.from[s.addr]; same != nil && same.Len() >= maxHandshakesOf {
		victim = same.Front().Value.(*stranger)
	} else if g.strangers.Len() >= maxHandshakes {
		victim = g.strangers.Front().Value.(*stranger)
	}
	if victim != nil {
		g.drop(victim)
	}
	if g.from[s.addr] == nil {
		g.from[s.addr] = list.New()
	}
	s.all, s.own = g.strangers.PushBack(s), g.from[s.addr].PushBack(s)
	return s, victim
}

// leave is called when a handshake is over, well or not.
func (g *gate) leave(s *stranger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(s)
}

func (g *gate) drop(s *stranger) {
	if s.all == nil {
		return
	}
	g.strangers.Remove(s.all)
	same := g.from[s.addr]
	same.Remove(s.own)
	if same.Len() == 0 {
		delete(g.from, s.addr)
	}
	s.all, s.own = nil, nil
}

// admit counts a connection of a peer who is known now, or says why there are too many. The connection that it returns is counted until it is closed.
func (g *gate) admit(conn net.Conn, p auth.Peer) (net.Conn, error) {
	if trusted(p) {
		return conn, nil
	}
	who := p.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.conns[who] >= maxConnsOf:
		return nil, fmt.Errorf("%s: %w: %d connections at once are the most", who, roost.Exhausted, maxConnsOf)
	case g.all >= g.most || person(p) && g.users >= g.mostUsers:
		return nil, fmt.Errorf("%s: %w: there are %d connections (LimitNOFILE= of the unit says how many there may be)", who, roost.Exhausted, g.all)
	}
	g.count(who, person(p), 1)
	return &counted{Conn: conn, done: sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.count(who, person(p), -1)
	})}, nil
}

func (g *gate) count(who string, user bool, n int) {
	g.all += n
	if user {
		g.users += n
	}
	if g.conns[who] += n; g.conns[who] == 0 {
		delete(g.conns, who)
	}
}

// trusted reports whether a peer is the daemon's own user or root.
func trusted(p auth.Peer) bool { return p.Local && p.Plays(auth.Schedd) }

// person reports whether a peer is a user, here or with a login from elsewhere.
func person(p auth.Peer) bool { return p.Local || p.User != "" }

// counted is a connection of a peer who is known.
type counted struct {
	net.Conn
	done func()
}

// Close closes the connection and stops counting it.
func (c *counted) Close() error {
	c.done()
	return c.Conn.Close()
}

// Origin is what strangers are counted by: the address, and of an IPv6 one the network, all of which one host can have.
func Origin(addr net.Addr) netip.Addr {
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
