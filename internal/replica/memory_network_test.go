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

// memoryNetwork connects addresses in memory. A cut direction delivers nothing and loses
// nothing, like TCP while it retransmits.
type memoryNetwork struct {
	mu        sync.Mutex
	change    *sync.Cond
	cutLinks  map[[2]string]bool
	listeners map[string]*memoryListener
}

func newMemoryNetwork() *memoryNetwork {
	n := &memoryNetwork{cutLinks: map[[2]string]bool{}, listeners: map[string]*memoryListener{}}
	n.change = sync.NewCond(&n.mu)
	return n
}

// setLink cuts or restores the direction from one address to another.
func (n *memoryNetwork) setLink(from, to string, cut bool) {
	n.mu.Lock()
	n.cutLinks[[2]string{from, to}] = cut
	n.mu.Unlock()
	n.change.Broadcast()
}

// isolateAddress cuts an address off from others in both directions, or reconnects it.
func (n *memoryNetwork) isolateAddress(addr string, others []string, cut bool) {
	for _, o := range others {
		if o != addr {
			n.setLink(addr, o, cut)
			n.setLink(o, addr, cut)
		}
	}
}

func (n *memoryNetwork) healAll() {
	n.mu.Lock()
	clear(n.cutLinks)
	n.mu.Unlock()
	n.change.Broadcast()
}

// memoryListener accepts connections to one address.
type memoryListener struct {
	network *memoryNetwork
	addr    string
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

func (n *memoryNetwork) listenAt(addr string) *memoryListener {
	l := &memoryListener{network: n, addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	n.listeners[addr] = l
	n.mu.Unlock()
	return l
}

func (l *memoryListener) Addr() net.Addr { return memberAddress(l.addr) }

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// dialerFor returns a replica's dial function for the others.
func (n *memoryNetwork) dialerFor(from string) func(string) (*grpc.ClientConn, error) {
	return func(to string) (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return n.connect(ctx, from, to)
			}))
	}
}

func (n *memoryNetwork) connect(ctx context.Context, from, to string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	silent := n.cutLinks[[2]string{from, to}] || n.cutLinks[[2]string{to, from}]
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
	case l.conns <- &memoryConn{Conn: b, network: n, from: to, to: from}:
		return &memoryConn{Conn: a, network: n, from: from, to: to}, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memoryConn is one end of a connection.
type memoryConn struct {
	net.Conn
	network  *memoryNetwork
	from, to string
	closed   bool
}

func (l *memoryConn) Write(p []byte) (int, error) {
	l.network.mu.Lock()
	for l.network.cutLinks[[2]string{l.from, l.to}] && !l.closed {
		l.network.change.Wait()
	}
	l.network.mu.Unlock()
	return l.Conn.Write(p)
}

func (l *memoryConn) Close() error {
	l.network.mu.Lock()
	l.closed = true
	l.network.mu.Unlock()
	l.network.change.Broadcast()
	return l.Conn.Close()
}

// SetWriteDeadline has no effect. gRPC sets none that matters here, and a write that
// waits at a cut would ignore it.
func (l *memoryConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
