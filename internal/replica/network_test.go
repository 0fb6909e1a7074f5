package replica

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// network joins addresses in memory. A cut direction loses nothing and delivers nothing, as TCP does not either while it tries again.
type network struct {
	mu        sync.Mutex
	change    *sync.Cond
	cut       map[[2]string]bool
	listeners map[string]*listener
}

func newNetwork() *network {
	n := &network{cut: map[[2]string]bool{}, listeners: map[string]*listener{}}
	n.change = sync.NewCond(&n.mu)
	return n
}

// set cuts or heals the direction from one address to another.
func (n *network) set(from, to string, cut bool) {
	n.mu.Lock()
	n.cut[[2]string{from, to}] = cut
	n.mu.Unlock()
	n.change.Broadcast()
}

// isolate cuts an address off from those others, both ways, or joins it again.
func (n *network) isolate(addr string, others []string, cut bool) {
	for _, o := range others {
		if o != addr {
			n.set(addr, o, cut)
			n.set(o, addr, cut)
		}
	}
}

func (n *network) heal() {
	n.mu.Lock()
	clear(n.cut)
	n.mu.Unlock()
	n.change.Broadcast()
}

// listener takes connections to one address.
type listener struct {
	n     *network
	addr  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (n *network) listen(addr string) *listener {
	l := &listener{n: n, addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	n.listeners[addr] = l
	n.mu.Unlock()
	return l
}

func (l *listener) Addr() net.Addr { return address(l.addr) }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// dialer gives a replica its way to the others.
func (n *network) dialer(from string) func(string) (*grpc.ClientConn, error) {
	return func(to string) (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.connect(ctx, from, to) }))
	}
}

func (n *network) connect(ctx context.Context, from, to string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	silent := n.cut[[2]string{from, to}] || n.cut[[2]string{to, from}]
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l == nil {
		return nil, errors.New("connection refused")
	}
	a, b := net.Pipe()
	select {
	case l.conns <- &link{Conn: b, n: n, from: to, to: from}:
		return &link{Conn: a, n: n, from: from, to: to}, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// link is one end of a connection.
type link struct {
	net.Conn
	n        *network
	from, to string
	closed   bool
}

func (l *link) Write(p []byte) (int, error) {
	l.n.mu.Lock()
	for l.n.cut[[2]string{l.from, l.to}] && !l.closed {
		l.n.change.Wait()
	}
	l.n.mu.Unlock()
	return l.Conn.Write(p)
}

func (l *link) Close() error {
	l.n.mu.Lock()
	l.closed = true
	l.n.mu.Unlock()
	l.n.change.Broadcast()
	return l.Conn.Close()
}

// SetWriteDeadline does not pass: gRPC sets none that matters here, and a write that waits at a cut would not feel it.
func (l *link) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
