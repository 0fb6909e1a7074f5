package rpc

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/roost-batch/roost"
)

// intakeLimiter bounds the bytes of requests that a server holds, for each peer and in
// total. Otherwise calls on many connections could make a server read thousands of the
// largest requests at once. A call reserves the most that its request may have before it
// is read, returns the unused part, and the rest when it ends. Without room it waits,
// first behind its peer's own calls.
type intakeLimiter struct {
	perPeer int64
	total   *semaphore.Weighted

	mu    sync.Mutex
	peers map[string]*peerIntake
}

// peerIntake is the state of one peer's requests.
type peerIntake struct {
	bytes *semaphore.Weighted
	calls int // calls in progress
}

func newIntakeLimiter(mostOf, most int64) *intakeLimiter {
	return &intakeLimiter{perPeer: mostOf, total: semaphore.NewWeighted(most), peers: map[string]*peerIntake{}}
}

// callIntake is what one call has reserved of both bounds. A nil one counts nothing.
type callIntake struct {
	limiter *intakeLimiter
	who     string
	peer    *peerIntake

	mu    sync.Mutex
	bytes int64
	ended bool
}

// beginCall begins a call of a peer.
func (in *intakeLimiter) beginCall(who string) *callIntake {
	in.mu.Lock()
	defer in.mu.Unlock()
	peer := in.peers[who]
	if peer == nil {
		peer = &peerIntake{bytes: semaphore.NewWeighted(in.perPeer)}
		in.peers[who] = peer
	}
	peer.calls++
	return &callIntake{limiter: in, who: who, peer: peer}
}

// acquire waits until there is room for n more bytes.
func (h *callIntake) acquire(ctx context.Context, n int) error {
	if h == nil {
		return nil
	}
	size := int64(n)
	if err := h.peer.bytes.Acquire(ctx, size); err != nil {
		return err
	}
	if err := h.limiter.total.Acquire(ctx, size); err != nil {
		h.peer.bytes.Release(size)
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended { // the call ended in the meantime
		h.limiter.total.Release(size)
		h.peer.bytes.Release(size)
		return context.Canceled
	}
	h.bytes += size
	return nil
}

// releaseExcess returns all but n bytes.
func (h *callIntake) releaseExcess(n int) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if more := h.bytes - int64(n); more > 0 {
		h.limiter.total.Release(more)
		h.peer.bytes.Release(more)
		h.bytes -= more
	}
}

// release returns everything at the end of the call.
func (h *callIntake) release() {
	h.releaseExcess(0)
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	if h.peer.calls--; h.peer.calls == 0 {
		delete(h.limiter.peers, h.who)
	}
}

// ReserveIntake waits until the server may hold n bytes more for the call. They are
// returned when it ends. It is for requests in several messages: n is what the peer has
// announced, and the caller must accept no more.
func ReserveIntake(ctx context.Context, n uint64) error {
	if n > maxMessageSize {
		return fmt.Errorf("request: %w: it has %d bytes, and %d is the most", roost.Exhausted, n, maxMessageSize)
	}
	if c, ok := ctx.Value(callKey{}).(*activeCall); ok {
		return c.intake.acquire(ctx, int(n))
	}
	return nil
}
