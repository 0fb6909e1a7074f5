package rpc

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// Bounds on those who have come without a certificate where that is allowed: what they
// may do is a matter of a moment and a few hundred bytes.
const (
	maxAnonymous     = 64 // one more ends the oldest: honest ones are over in milliseconds
	anonymousBytes   = 64 << 10
	anonymousTimeout = 10 * time.Second
)

// anonymousConns are the connections of those who have no certificate, the oldest first.
type anonymousConns struct {
	mu    sync.Mutex
	conns []*anonymousConn
}

// anonymousConn is one of them.
type anonymousConn struct {
	net.Conn
	conns  *anonymousConns
	budget int // bytes that it may still send
	timer  *time.Timer
}

var errAnonymousLimit = errors.New("who has no certificate may not say that much")

// add lets a stranger in for a moment.
func (s *anonymousConns) add(conn net.Conn) net.Conn {
	p := &anonymousConn{Conn: conn, conns: s, budget: anonymousBytes}
	p.timer = time.AfterFunc(anonymousTimeout, func() { p.Close() })
	s.mu.Lock()
	s.conns = append(s.conns, p)
	var oldest *anonymousConn
	if len(s.conns) > maxAnonymous {
		oldest = s.conns[0]
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return p
}

func (p *anonymousConn) Read(b []byte) (int, error) {
	if p.budget <= 0 {
		return 0, errAnonymousLimit
	}
	n, err := p.Conn.Read(b[:min(len(b), p.budget)])
	p.budget -= n
	return n, err
}

// Close closes the connection and stops counting it.
func (p *anonymousConn) Close() error {
	p.timer.Stop()
	p.conns.mu.Lock()
	p.conns.conns = slices.DeleteFunc(p.conns.conns, func(other *anonymousConn) bool { return other == p })
	p.conns.mu.Unlock()
	return p.Conn.Close()
}

// isAnonymous reports whether a peer has shown nothing.
func isAnonymous(p peer.Peer) bool {
	return !p.Local && p.User == "" && p.Name == "" && p.Plays(peer.Anonymous)
}
