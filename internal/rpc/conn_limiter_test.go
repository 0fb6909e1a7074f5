package rpc

import (
	"errors"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// addrConn is a connection that has only an address.
type addrConn struct {
	net.Conn
	addr net.TCPAddr
}

func (f *addrConn) RemoteAddr() net.Addr { return &f.addr }
func (f *addrConn) Close() error         { return nil }

func newIPv4Conn(host byte) *addrConn {
	return &addrConn{addr: net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: rand.IntN(1 << 16)}}
}

func TestOldestAnonymousMakesRoom(t *testing.T) {
	g := newConnLimiter().handshakes
	var first *AnonymousConn
	for i := range maxHandshakesPerAddr {
		s, victim := g.Add(newIPv4Conn(1))
		if i == 0 {
			first = s
		}
		if victim != nil {
			t.Fatalf("connection %d of one address: somebody had to go", i)
		}
	}
	honest, victim := g.Add(newIPv4Conn(2))
	if victim != nil {
		t.Errorf("another address paid for the first")
	}
	if _, victim = g.Add(newIPv4Conn(1)); victim != first {
		t.Errorf("got %v, want the oldest", victim)
	}
	first.StopCounting() // its handshake fails when it is hung up on: counted once
	honest.StopCounting()
	if n := g.conns.Len(); n != maxHandshakesPerAddr {
		t.Errorf("%d connections, want %d", n, maxHandshakesPerAddr)
	}
}

// TestHandshakesCounted begins and ends handshakes from many addresses at random, and
// compares the limiter with a list.
func TestHandshakesCounted(t *testing.T) {
	g := newConnLimiter().handshakes
	var here []*AnonymousConn
	most := 0
	for range 20_000 {
		if rand.IntN(10) < 8 {
			s, victim := g.Add(newIPv4Conn(byte(rand.IntN(40))))
			for i, o := range here {
				if o == victim {
					here = append(here[:i], here[i+1:]...)
					break
				}
			}
			here = append(here, s)
		} else if len(here) > 0 {
			i := rand.IntN(len(here))
			here[i].StopCounting()
			here = append(here[:i], here[i+1:]...)
		}
		sum := 0
		for addr, l := range g.byAddr {
			if sum += l.Len(); l.Len() == 0 || l.Len() > maxHandshakesPerAddr {
				t.Fatalf("%v: %d connections", addr, l.Len())
			}
		}
		if most = max(most, sum); sum != len(here) || sum != g.conns.Len() {
			t.Fatalf("%d by address, %d in all, %d came and did not go", sum, g.conns.Len(), len(here))
		}
	}
	if most != maxHandshakes {
		t.Errorf("never more than %d at once: the bound was not tried", most)
	}
}

func TestConnLimitPerPeer(t *testing.T) {
	g := newConnLimiter()
	g.maxConns, g.maxUserConns = 3*maxConnsPerPeer, maxConnsPerPeer+10
	loud, other := peer.Peer{Local: true, UID: 12345}, peer.Peer{Local: true, UID: 12346}
	var all []net.Conn
	for range maxConnsPerPeer {
		c, err := g.countConn(&addrConn{}, loud)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if _, err := g.countConn(&addrConn{}, loud); !errors.Is(err, roost.Exhausted) {
		t.Errorf("one too many of one user: got %v", err)
	}
	for i := range 11 {
		if _, err := g.countConn(&addrConn{}, other); (err != nil) != (i == 10) {
			t.Errorf("connection %d of another user: got %v", i, err)
		}
	}
	if _, err := g.countConn(&addrConn{}, peer.Peer{Name: "n1"}); err != nil {
		t.Errorf("users took the room of nodes: %v", err)
	}
	if _, err := g.countConn(&addrConn{}, peer.Peer{Local: true}); err != nil {
		t.Errorf("root: %v", err)
	}
	all[0].Close()
	all[0].Close()
	if _, err := g.countConn(&addrConn{}, loud); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if _, err := g.countConn(&addrConn{}, loud); err == nil {
		t.Errorf("a connection that was closed twice was taken off twice")
	}
}
