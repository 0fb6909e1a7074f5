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
	connectTimeout = 2 * time.Second
	// between two rounds over backends that all refuse
	retryPause = 100 * time.Millisecond
	// for a client to close its side when its task has closed the other
	halfOpenTime = time.Minute
	// more clients wait in the queue of the kernel
	maxConnections = 10_000
)

// server is a server that runs.
type server struct {
	Config
	mu      sync.Mutex
	open    map[net.Conn]struct{}
	cut     bool // connections are closed
	running sync.WaitGroup
}

// Serve forwards connections until ctx ends. Then it accepts none, and returns when those
// that exist have ended or the time to drain is over.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	s := &server{Config: c, open: map[net.Conn]struct{}{}}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
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

// track notes a connection that drain may have to close.
func (s *server) track(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
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
	s.track(client)
	defer s.close(client)
	b, backend := s.connect(ctx)
	if backend == nil {
		s.Log.Warn("no task takes a connection", "client", client.RemoteAddr().String())
		return
	}
	defer s.Pool.release(b)
	s.track(backend)
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

// connect connects to a backend. Nothing was sent to one that does not accept, so that
// another can have the connection.
func (s *server) connect(ctx context.Context) (*backendState, net.Conn) {
	// a client that was accepted is served, even when ctx has ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Wait)
	defer cancel()
	var tried []string
	for {
		b, changed := s.Pool.acquire(time.Now(), tried)
		if b == nil {
			pause := time.NewTimer(retryPause)
			if len(tried) == 0 { // only a change helps
				pause.Stop()
			}
			select {
			case <-changed:
			case <-pause.C:
			case <-ctx.Done():
				return nil, nil
			}
			pause.Stop()
			tried = nil
			continue
		}
		dialer := net.Dialer{Timeout: connectTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", b.Address)
		if s.Pool.connected(time.Now(), b, err == nil) {
			s.Log.Warn("a task refuses connections and gets no more for a time", "address", b.Address, "err", err)
		}
		if err == nil {
			return b, conn
		}
		tried = append(tried, b.Address)
	}
}

// copyStream copies one direction until its end, and passes the end on. After an error
// the other direction ends, too.
func copyStream(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	to.Close()
	from.Close()
}
