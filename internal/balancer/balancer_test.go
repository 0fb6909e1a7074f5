package balancer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// testTimeout is how long anything may take on a busy machine.
const testTimeout = time.Minute

// choose returns the addresses that a pool chooses for n connections, which go on.
func choose(p *Pool, now time.Time, n int) (list []string) {
	for range n {
		b, _ := p.acquire(now, nil, nil)
		if b == nil {
			return append(list, "none")
		}
		list = append(list, b.Address)
	}
	return list
}

// TestChoice checks which backend gets a connection.
func TestChoice(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name     string
		method   Method
		backends []Backend
		want     []string
	}{
		{"fewest connections", LeastConnections, []Backend{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}},
			[]string{"a", "b", "a", "b"}},
		{"for their weight", LeastConnections, []Backend{{Address: "a", Weight: 3}, {Address: "b", Weight: 1}},
			[]string{"a", "a", "b", "a", "a"}},
		{"in turn", RoundRobin, []Backend{{Address: "a", Weight: 3}, {Address: "b", Weight: 1}},
			[]string{"a", "a", "b", "a", "a"}},
		{"no weight", LeastConnections, []Backend{{Address: "a"}, {Address: "b", Weight: 1}}, []string{"b", "b", "b"}},
		{"only one without weight", LeastConnections, []Backend{{Address: "a"}}, []string{"a"}},
		{"doubtful", RoundRobin, []Backend{{Address: "a", Weight: 1, Doubtful: true}, {Address: "b", Weight: 1}},
			[]string{"b", "b"}},
		{"only a doubtful one", RoundRobin, []Backend{{Address: "a", Weight: 1, Doubtful: true}}, []string{"a", "a"}},
		{"none", LeastConnections, nil, []string{"none"}},
	} {
		p := NewPool(c.method)
		p.Set(c.backends)
		if got := choose(p, now, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEjection checks that a backend that refuses gets no connections for a time, unless
// there is no other.
func TestEjection(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPool(LeastConnections)
	p.Set([]Backend{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}})
	for i := range maxRefused {
		b, _ := p.acquire(now, []string{"b"}, nil)
		if ejected := p.connected(now, b, false); ejected != (i == maxRefused-1) {
			t.Fatalf("ejected by refusal %d: %v", i+1, ejected)
		}
	}
	if got := choose(p, now, 2); !slices.Equal(got, []string{"b", "b"}) {
		t.Errorf("ejected: %q", got)
	}
	b, _ := p.acquire(now, []string{"b"}, nil)
	if b == nil || b.Address != "a" {
		t.Error("an ejected backend does not get a connection that no other can take")
	}
	p.connected(now, b, true)
	if got := choose(p, now, 1); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after it has accepted again: %q", got)
	}
}

// TestLeavingBackend checks that a backend that is no longer set gets no connections. It
// is forgotten with its last one.
func TestLeavingBackend(t *testing.T) {
	p := NewPool(LeastConnections)
	p.Set([]Backend{{Address: "a", Weight: 1}})
	b, _ := p.acquire(time.Unix(1, 0), nil, nil)
	_, changed := p.acquire(time.Unix(1, 0), []string{"a"}, nil)
	p.Set([]Backend{{Address: "b", Weight: 1}})
	<-changed
	if got := choose(p, time.Unix(1, 0), 2); !slices.Equal(got, []string{"b", "b"}) {
		t.Errorf("after it left: %q", got)
	}
	if len(p.backends) != 2 {
		t.Errorf("%d backends, want the leaving one, too", len(p.backends))
	}
	p.release(b)
	if len(p.backends) != 1 {
		t.Errorf("%d backends after its last connection", len(p.backends))
	}
}

// testServer is a server under test.
type testServer struct {
	*testing.T
	pool    *Pool
	address string
	stop    func() // returns when Serve has returned
	// has room for a signal for each connection that a backend has accepted
	accepted chan struct{}
}

func startServer(t *testing.T, wait, drain time.Duration) *testServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &testServer{T: t, pool: NewPool(LeastConnections), address: l.Addr().String(),
		accepted: make(chan struct{}, 1000)}
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, l, Config{Pool: s.pool, Wait: wait, Drain: drain, Log: slog.New(slog.DiscardHandler)})
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// backend starts a task that answers each connection when the client has closed its
// side. The answer is its name and what the client has written.
func (s *testServer) backend(name string) (address string, l net.Listener) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted <- struct{}{}
			go func() {
				defer c.Close()
				text, _ := io.ReadAll(c)
				fmt.Fprintf(c, "%s got %s", name, text)
			}()
		}
	}()
	return l.Addr().String(), l
}

// dial opens a connection through the server.
func (s *testServer) dial() *net.TCPConn {
	s.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testTimeout))
	return c.(*net.TCPConn)
}

// ask writes on a connection and returns the answer.
func (s *testServer) ask(c *net.TCPConn, text string) string {
	s.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		s.Fatal(err)
	}
	c.CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil {
		s.Fatal(err)
	}
	return string(answer)
}

// refusing returns an address that refuses connections.
func (s *testServer) refusing() string {
	address, l := s.backend("closed")
	l.Close()
	return address
}

// TestForward checks that all bytes pass in both directions. Backends that refuse cost no
// connection.
func TestForward(t *testing.T) {
	s := startServer(t, testTimeout, testTimeout)
	a, _ := s.backend("a")
	s.pool.Set([]Backend{{Address: s.refusing(), Weight: 1}, {Address: a, Weight: 1},
		{Address: s.refusing(), Weight: 1}})
	for i := range 20 {
		if got, want := s.ask(s.dial(), fmt.Sprint("hello ", i)), fmt.Sprint("a got hello ", i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestConnectionsGoOn checks that a connection goes on when its backend leaves. It does
// so when the server is to end, too, which accepts no others then.
func TestConnectionsGoOn(t *testing.T) {
	s := startServer(t, testTimeout, testTimeout)
	a, _ := s.backend("a")
	b, _ := s.backend("b")
	s.pool.Set([]Backend{{Address: a, Weight: 1}})
	first := s.dial()
	<-s.accepted
	s.pool.Set([]Backend{{Address: b, Weight: 1}})
	if got := s.ask(s.dial(), "x"); got != "b got x" {
		t.Errorf("a new connection: %q", got)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.stop() }()
	for { // until the listener is closed
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			break
		}
		c.Close()
	}
	if got := s.ask(first, "y"); got != "a got y" {
		t.Errorf("the connection of before: %q", got)
	}
	<-stopped
}

// TestWaitForBackend checks that a client waits for a backend, and not for ever.
func TestWaitForBackend(t *testing.T) {
	s := startServer(t, testTimeout, testTimeout)
	a, _ := s.backend("a")
	c := s.dial()
	s.pool.Set([]Backend{{Address: s.refusing(), Weight: 1}})
	s.pool.Set([]Backend{{Address: a, Weight: 1}})
	if got := s.ask(c, "x"); got != "a got x" {
		t.Errorf("after a wait: %q", got)
	}
	short := startServer(t, time.Millisecond, testTimeout)
	if n, err := short.dial().Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("without backends: %d bytes, %v", n, err)
	}
}

// TestDrainEnds checks that the end does not wait for connections for ever.
func TestDrainEnds(t *testing.T) {
	s := startServer(t, testTimeout, time.Millisecond)
	a, _ := s.backend("a")
	s.pool.Set([]Backend{{Address: a, Weight: 1}})
	c := s.dial()
	<-s.accepted
	s.stop()
	if _, err := io.ReadAll(c); err != nil {
		t.Logf("the connection has ended: %v", err)
	}
}
