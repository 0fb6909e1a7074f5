package balancer

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	connectTimeout = 2 * time.Second
	// how long a backend may take to accept before the next one is tried beside it: the
	// Connection Attempt Delay of RFC 8305
	slowConnect = 250 * time.Millisecond
	maxDials    = 3 // of one client at a time
	// between two rounds over backends that all refuse
	retryPause = 100 * time.Millisecond
	// a machine that has died says nothing: its connections end by three unanswered
	// probes, or when maxRetransmits repetitions of what was sent got no answer. That is
	// 12.6 s after the first one, and more over a slow network.
	probeInterval  = 5 * time.Second
	maxProbes      = 3
	maxRetransmits = 6
)

// connectionSearch looks for a backend that accepts the connection of one client. The
// naive way tries one backend after the other. When a machine dies, its backends do not
// refuse, and each of them would cost a timeout.
type connectionSearch struct {
	*server
	tried   []string // addresses, in this round
	dialing []string // those of them that have not answered
	isRound bool     // all were tried
	results chan dialResult
}

// dialResult is the end of one attempt to connect.
type dialResult struct {
	backend *backendState
	began   time.Time
	conn    net.Conn
	err     error
}

// connect connects to a backend. Nothing was sent to one that does not accept, so that
// another can have the connection.
func (s *server) connect(ctx context.Context) (*backendState, net.Conn) {
	// a client that was accepted is served, even when ctx has ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Wait)
	search := &connectionSearch{server: s, results: make(chan dialResult, maxDials)}
	defer search.abandon(cancel)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pause, changed := search.dialNext(ctx)
		timer.Reset(pause)
		select {
		case r := <-search.results:
			if search.ended(r); r.err == nil {
				s.Pool.connected(time.Now(), r.backend, true)
				return r.backend, r.conn
			}
			s.noteFailure(r)
		case <-timer.C:
			if search.isRound {
				search.tried = slices.Clone(search.dialing)
			}
		case <-changed:
			search.tried = slices.Clone(search.dialing)
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// dialNext begins to connect to one more backend, if there is one. It returns how long to
// wait before the next one, and what tells a change of the backends.
func (c *connectionSearch) dialNext(ctx context.Context) (pause time.Duration, changed <-chan struct{}) {
	if len(c.dialing) == maxDials {
		return c.Wait, nil
	}
	b, changed := c.Pool.acquire(time.Now(), c.tried, c.dialing)
	switch c.isRound = b == nil && len(c.tried) > len(c.dialing); {
	case c.isRound:
		return retryPause, changed
	case b == nil: // only a change or an answer helps
		return c.Wait, changed
	}
	c.tried, c.dialing = append(c.tried, b.Address), append(c.dialing, b.Address)
	began := time.Now()
	c.running.Go(func() {
		conn, err := c.dial(ctx, b.Address)
		c.results <- dialResult{b, began, conn, err}
	})
	return slowConnect, nil
}

// ended notes that a backend has answered, or was too slow.
func (c *connectionSearch) ended(r dialResult) {
	c.dialing = slices.DeleteFunc(c.dialing, func(a string) bool { return a == r.backend.Address })
}

// abandon ends the attempts that are not needed any more. A backend that was overtaken
// was too slow.
func (c *connectionSearch) abandon(cancel context.CancelFunc) {
	cancel()
	if len(c.dialing) == 0 {
		return
	}
	c.running.Go(func() {
		for range len(c.dialing) {
			r := <-c.results
			switch {
			case r.err == nil:
				r.conn.Close()
				c.Pool.release(r.backend)
			case errors.Is(r.err, context.Canceled) && time.Since(r.began) < slowConnect:
				c.Pool.release(r.backend)
			default:
				c.noteFailure(r)
			}
		}
	})
}

// noteFailure notes that a backend has not accepted a connection.
func (s *server) noteFailure(r dialResult) {
	ejected := false
	if errors.Is(r.err, syscall.ECONNREFUSED) {
		ejected = s.Pool.connected(time.Now(), r.backend, false)
	} else {
		ejected = s.Pool.silent(time.Now(), r.backend)
	}
	if ejected {
		s.Log.Warn("a task accepts no connections and gets no more for a time", "address", r.backend.Address,
			"err", r.err)
	}
}

// dialBackend opens a connection whose other end is asked from time to time whether it is
// there.
func dialBackend(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true,
		Idle: probeInterval, Interval: probeInterval, Count: maxProbes}}
	return dialer.DialContext(ctx, "tcp", address)
}

// isUnanswered reports whether the other end of a connection does not answer. A timeout
// of the socket for what was sent (TCP_USER_TIMEOUT) would also end a connection to a
// task that lives and reads nothing for a while.
func isUnanswered(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	var info *unix.TCPInfo
	controlErr := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return controlErr == nil && err == nil && info.Retransmits >= maxRetransmits
}
