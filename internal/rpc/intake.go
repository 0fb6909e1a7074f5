package rpc

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/roost-batch/roost"
)

// intake bounds the bytes of requests that a server holds, of each peer and of all. A call of many connections could otherwise have a server read thousands of
// requests of the longest kind at once. A call takes what its request may have before it is read, gives back what the request does not have, and the rest when
// it ends; where there is no room, it waits, behind its peer's own calls first.
type intake struct {
	mostOf int64
	all    *semaphore.Weighted

	mu    sync.Mutex
	peers map[string]*peerIntake
}

// peerIntake is what one peer's requests hold.
type peerIntake struct {
	bytes *semaphore.Weighted
	calls int // under way
}

func newIntake(mostOf, most int64) *intake {
	return &intake{mostOf: mostOf, all: semaphore.NewWeighted(most), peers: map[string]*peerIntake{}}
}

// held is what one call holds of both bounds. A nil one counts nothing.
type held struct {
	intake *intake
	who    string
	peer   *peerIntake

	mu    sync.Mutex
	bytes int64
	over  bool
}

// of begins a call of a peer.
func (in *intake) of(who string) *held {
	in.mu.Lock()
	defer in.mu.Unlock()
	peer := in.peers[who]
	if peer == nil {
		peer = &peerIntake{bytes: semaphore.NewWeighted(in.mostOf)}
		in.peers[who] = peer
	}
	peer.calls++
	return &held{intake: in, who: who, peer: peer}
}

// take waits until there is room for n more bytes.
func (h *held) take(ctx context.Context, n int) error {
	if h == nil {
		return nil
	}
	size := int64(n)
	if err := h.peer.bytes.Acquire(ctx, size); err != nil {
		return err
	}
	if err := h.intake.all.Acquire(ctx, size); err != nil {
		h.peer.bytes.Release(size)
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over { // the call ended in the meantime
		h.intake.all.Release(size)
		h.peer.bytes.Release(size)
		return context.Canceled
	}
	h.bytes += size
	return nil
}

// shrink gives back all but n bytes.
func (h *held) shrink(n int) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if more := h.bytes - int64(n); more > 0 {
		h.intake.all.Release(more)
		h.peer.bytes.Release(more)
		h.bytes -= more
	}
}

// release ends the call.
func (h *held) release() {
	h.shrink(0)
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.intake.mu.Lock()
	defer h.intake.mu.Unlock()
	if h.peer.calls--; h.peer.calls == 0 {
		delete(h.intake.peers, h.who)
	}
}

// Hold waits until the server may hold n bytes more for the call, which are given back when it ends. It is for requests that come in several messages; n is
// what the peer has announced, and who calls takes no more than that.
func Hold(ctx context.Context, n uint64) error {
	if n > maxMessage {
		return fmt.Errorf("request: %w: it has %d bytes, and %d is the most", roost.Exhausted, n, maxMessage)
	}
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.held.take(ctx, int(n))
	}
	return nil
}
