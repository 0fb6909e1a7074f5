package metrics

import (
	"net"
	"sync"
)

// connLimiter is a listener that has at most so many connections open. Naively further
// connections would be closed at once; they wait in the queue of the socket instead, for
// others that the timeouts of the server end.
type connLimiter struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newConnLimiter(l net.Listener, most int) *connLimiter {
	return &connLimiter{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *connLimiter) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, limiter: l}, nil
}

// Close implements net.Listener.
func (l *connLimiter) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that is counted until it is closed.
type limitedConn struct {
	net.Conn
	limiter *connLimiter
	once    sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.limiter.slots })
	return err
}
