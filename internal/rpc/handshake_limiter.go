package rpc

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// handshakeLimiter bounds the connections that a daemon opens over TLS at once. A schedd
// that starts again connects to the nodes of all its tasks. Without a bound all
// handshakes go on side by side: none ends until nearly all do, users wait behind them,
// and on a busy machine they exceed their time and the work was for nothing.
//
// A connection has a slot from before it is made until its handshake is over, so that the
// other end does not wait for the slot. A node that is off would hold its slot until the
// connection fails, so it has the slot for slotDialTime only.
type handshakeLimiter struct {
	once  sync.Once
	slots *semaphore.Weighted
}

// slotDialTime is how long a connection may take to be made without losing its slot.
const slotDialTime = 250 * time.Millisecond

// acquire waits for a slot. More than one call of release does nothing.
func (l *handshakeLimiter) acquire(ctx context.Context) (release func(), err error) {
	l.once.Do(func() { l.slots = semaphore.NewWeighted(maxClientHandshakes) })
	if err := l.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.slots.Release(1) }), nil
}

// dial makes a connection whose handshake may begin.
func (l *handshakeLimiter) dial(ctx context.Context,
	open func(context.Context) (net.Conn, error)) (net.Conn, error) {
	release, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(slotDialTime, release)
	conn, err := openInTime(ctx, open)
	if late.Stop() && err == nil {
		return &slottedConn{conn, release}, nil
	}
	release()
	if err != nil {
		return nil, err
	}
	if release, err = l.acquire(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return &slottedConn{conn, release}, nil
}

func openInTime(ctx context.Context, open func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	return open(ctx)
}

// slottedConn is a connection before its handshake, with its slot.
type slottedConn struct {
	net.Conn
	release func()
}

// Close closes the connection and gives its slot up.
func (c *slottedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
