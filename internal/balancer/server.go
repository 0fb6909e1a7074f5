package balancer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Config configures a server.
type Config struct {
	Pool *Pool
	// how long a client waits for a backend that accepts its connection
	Wait time.Duration
	// how long connections may go on after the end
	Drain time.Duration
	Log   *slog.Logger
}

const (
	// for a client to close its side when its task has closed the other
	halfOpenTime = time.Minute
	// more clients wait in the queue of the kernel
	maxConnections = 10_000
)

// server is a server that runs.
type server struct {
	Config
	dial    func(ctx context.Context, address string) (net.Conn, error)
	mu      sync.Mutex
	open    map[net.Conn]bool // true: to a backend
	cut     bool              // connections are closed
	running sync.WaitGroup
}

// Serve forwards connections until ctx ends. Then it accepts none, and returns when those
// that exist have ended or the time to drain is over.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	s := &server{Config: c, dial: dialBackend, open: map[net.Conn]bool{}}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { s.endUnanswered(ended) })
	defer watching.Wait()
	defer close(ended)
	err := s.accept(ctx, l)
	l.Close()
	if ctx.Err() != nil {
		err = nil
	}
	s.drain()
	return err
}

// accept accepts connections until the listener is closed.
func (s *server) accept(ctx context.Context, l net.Listener) error {
	slots := make(chan struct{}, maxConnections)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		client, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				// no descriptors are left, or the client has gone: others go on
				s.Log.Warn("a connection was not accepted", "err", err)
				<-slots
				select {
				case <-time.After(retryPause):
					continue
				case <-ctx.Done():
				}
			}
			return err
		}
		s.running.Go(func() {
			defer func() { <-slots }()
			s.forward(ctx, client)
		})
	}
}

// drain waits for the end of all connections, and closes those that go on too long.
func (s *server) drain() {
	late := time.AfterFunc(s.Drain, func() {
		s.mu.Lock()
		s.cut = true
		n := len(s.open)
		for c := range s.open {
			c.Close()
		}
		s.mu.Unlock()
		s.Log.Warn("connections are closed after the time to drain", "connections", n/2)
	})
	defer late.Stop()
	s.running.Wait()
}

// endUnanswered ends connections to machines that do not answer any more, until ended is
// closed.
func (s *server) endUnanswered(ended <-chan struct{}) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ended:
			return
		}
		s.mu.Lock()
		for c, toBackend := range s.open {
			if toBackend && isUnanswered(c) {
				s.Log.Warn("a connection is closed: the machine does not answer", "address", c.RemoteAddr().String())
				c.Close()
			}
		}
		s.mu.Unlock()
	}
}

// track notes a connection that drain may have to close.
func (s *server) track(c net.Conn, toBackend bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = toBackend
	if s.cut {
		c.Close()
	}
}

func (s *server) close(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// forward serves one client.
func (s *server) forward(ctx context.Context, client net.Conn) {
	s.track(client, false)
	defer s.close(client)
	b, backend := s.connect(ctx)
	if backend == nil {
		s.Log.Warn("no task takes a connection", "client", client.RemoteAddr().String())
		return
	}
	defer s.Pool.release(b)
	s.track(backend, true)
	defer s.close(backend)
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyStream(backend, client)
	}()
	copyStream(client, backend)
	// what the client says now is of no use to anybody, but it may not know that yet
	client.SetReadDeadline(time.Now().Add(halfOpenTime))
	<-done
}

// copyStream copies one direction until its end, and passes the end on. After an error
// both sides are told by a reset: an answer that was cut must not look whole.
func copyStream(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	for _, c := range []net.Conn{to, from} {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
	}
}
