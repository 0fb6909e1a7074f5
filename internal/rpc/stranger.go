package rpc

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/auth"
)

// Bounds on those who have come without a certificate where that is allowed: what they may do is a matter of a moment and a few hundred bytes.
const (
	maxPassing   = 64 // one more ends the oldest: honest ones are over in milliseconds
	passingBytes = 64 << 10
	passingTime  = 10 * time.Second
)

// passers are the connections of those who have no certificate, the oldest first.
type passers struct {
	mu    sync.Mutex
	conns []*passing
}

// passing is one of them.
type passing struct {
	net.Conn
	of   *passers
	left int // bytes that it may still send
	over *time.Timer
}

var errTooMuch = errors.New("who has no certificate may not say that much")

// admit lets a stranger in for a moment.
func (s *passers) admit(conn net.Conn) net.Conn {
	p := &passing{Conn: conn, of: s, left: passingBytes}
	p.over = time.AfterFunc(passingTime, func() { p.Close() })
	s.mu.Lock()
	s.conns = append(s.conns, p)
	var oldest *passing
	if len(s.conns) > maxPassing {
		oldest = s.conns[0]
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return p
}

func (p *passing) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errTooMuch
	}
	n, err := p.Conn.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

// Close closes the connection and stops counting it.
func (p *passing) Close() error {
	p.over.Stop()
	p.of.mu.Lock()
	p.of.conns = slices.DeleteFunc(p.of.conns, func(other *passing) bool { return other == p })
	p.of.mu.Unlock()
	return p.Conn.Close()
}

// isStranger reports whether a peer has shown nothing.
func isStranger(p auth.Peer) bool {
	return !p.Local && p.User == "" && p.Name == "" && p.Plays(auth.Stranger)
}
