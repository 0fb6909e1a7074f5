package rpc

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// Bounds on anonymous connections, where these are allowed. What they may do takes a
// moment and a few hundred bytes.
const (
	maxAnonymous     = 64 // one more closes the oldest: an honest one needs milliseconds
	anonymousBytes   = 64 << 10
	anonymousTimeout = 10 * time.Second
)

// anonymousConns lists the anonymous connections, oldest first.
type anonymousConns struct {
	mu    sync.Mutex
	conns []*anonymousConn
}

// anonymousConn is an anonymous connection.
type anonymousConn struct {
	net.Conn
	conns  *anonymousConns
	budget int // bytes that the client may still send
	timer  *time.Timer
}

var errAnonymousLimit = errors.New("a caller without a certificate may not send that much")

// add adds an anonymous connection, which is closed after a short time.
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

// isAnonymous reports whether a peer has no identity.
func isAnonymous(p peer.Peer) bool {
	return !p.Local && p.User == "" && p.Name == "" && p.Plays(peer.Anonymous)
}
