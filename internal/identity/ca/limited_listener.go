package ca

import (
	"net"
	"net/netip"

	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on those who have not shown a certificate.
const (
	maxAnonymous  = 256 // connections of all
	maxPerAddress = 16  // of one address, or one IPv6 network
)

// limitedListener bounds the connections without a certificate. Where there are too many,
// it closes the oldest one.
type limitedListener struct {
	net.Listener
	limiter *rpc.AnonymousLimiter
	onDrop  func(from netip.Addr)
}

func newLimitedListener(l net.Listener, dropped func(netip.Addr)) *limitedListener {
	return &limitedListener{Listener: l, limiter: rpc.NewAnonymousLimiter(maxAnonymous, maxPerAddress), onDrop: dropped}
}

// Accept waits for the next connection, which counts until its peer shows a certificate.
func (g *limitedListener) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c, victim := g.limiter.Add(conn)
	if victim != nil {
		victim.Conn.Close()
		g.onDrop(victim.Addr)
	}
	return c, nil
}
