package rpc

import (
	"errors"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// from is a connection that has an address and nothing else.
type from struct {
	net.Conn
	addr net.TCPAddr
}

func (f *from) RemoteAddr() net.Addr { return &f.addr }
func (f *from) Close() error         { return nil }

func stranger4(host byte) *from {
	return &from{addr: net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: rand.IntN(1 << 16)}}
}

func TestOldestStrangerMakesRoom(t *testing.T) {
	g := newGate()
	var first *stranger
	for i := range maxHandshakesOf {
		s, victim := g.enter(stranger4(1))
		if i == 0 {
			first = s
		}
		if victim != nil {
			t.Fatalf("stranger %d of one address: somebody had to go", i)
		}
	}
	honest, victim := g.enter(stranger4(2))
	if victim != nil {
		t.Errorf("another address paid for the first")
	}
	if _, victim = g.enter(stranger4(1)); victim != first {
		t.Errorf("got %v, want the oldest", victim)
	}
	g.leave(first) // its handshake fails when it is hung up on: counted once
	g.leave(honest)
	if n := g.strangers.Len(); n != maxHandshakesOf {
		t.Errorf("%d strangers, want %d", n, maxHandshakesOf)
	}
}

// TestStrangersAreCounted lets strangers of many addresses come and go, and compares with a list.
func TestStrangersAreCounted(t *testing.T) {
	g := newGate()
	var here []*stranger
	most := 0
	for range 20_000 {
		if rand.IntN(10) < 8 {
			s, victim := g.enter(stranger4(byte(rand.IntN(40))))
			for i, o := range here {
				if o == victim {
					here = append(here[:i], here[i+1:]...)
					break
				}
			}
			here = append(here, s)
		} else if len(here) > 0 {
			i := rand.IntN(len(here))
			g.leave(here[i])
			here = append(here[:i], here[i+1:]...)
		}
		sum := 0
		for addr, l := range g.from {
			if sum += l.Len(); l.Len() == 0 || l.Len() > maxHandshakesOf {
				t.Fatalf("%v: %d strangers", addr, l.Len())
			}
		}
		if most = max(most, sum); sum != len(here) || sum != g.strangers.Len() {
			t.Fatalf("%d by address, %d in all, %d came and did not go", sum, g.strangers.Len(), len(here))
		}
	}
	if most != maxHandshakes {
		t.Errorf("never more than %d at once: the bound was not tried", most)
	}
}

func TestConnectionsOfOnePeerAreBounded(t *testing.T) {
	g := newGate()
	g.most, g.mostUsers = 3*maxConnsOf, maxConnsOf+10
	loud, other := auth.Peer{Local: true, UID: 12345}, auth.Peer{Local: true, UID: 12346}
	var all []net.Conn
	for range maxConnsOf {
		c, err := g.admit(&from{}, loud)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if _, err := g.admit(&from{}, loud); !errors.Is(err, roost.Exhausted) {
		t.Errorf("one too many of one user: got %v", err)
	}
	for i := range 11 {
		if _, err := g.admit(&from{}, other); (err != nil) != (i == 10) {
			t.Errorf("connection %d of another user: got %v", i, err)
		}
	}
	if _, err := g.admit(&from{}, auth.Peer{Name: "n1"}); err != nil {
		t.Errorf("users took the room of nodes: %v", err)
	}
	if _, err := g.admit(&from{}, auth.Peer{Local: true}); err != nil {
		t.Errorf("root: %v", err)
	}
	all[0].Close()
	all[0].Close()
	if _, err := g.admit(&from{}, loud); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if _, err := g.admit(&from{}, loud); err == nil {
		t.Errorf("a connection that was closed twice was taken off twice")
	}
}
