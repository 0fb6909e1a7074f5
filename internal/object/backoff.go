package object

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// How long an object store that asks for fewer requests gets none: at first, and at most.
// Each time doubles it, and an answer begins anew.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// Backoff has all requests to an object store wait that asks for fewer. If each of a
// thousand transfers counted for itself, they would come back together.
type Backoff struct {
	mu        sync.Mutex
	endpoints map[string]*endpointBackoff // by host and port
}

type endpointBackoff struct {
	step  time.Duration // of the wait that goes on, or went on last
	until time.Time
	slow  int // how often it has asked for fewer
}

// NewBackoff returns one that lets all requests through.
func NewBackoff() *Backoff { return &Backoff{endpoints: map[string]*endpointBackoff{}} }

// Slow notes that an endpoint asks for fewer requests. Answers to requests that were sent
// before the present wait do not make it longer.
func (b *Backoff) Slow(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.endpoints[endpoint]
	if e == nil {
		e = &endpointBackoff{}
		b.endpoints[endpoint] = e
	}
	e.slow++
	now := time.Now()
	if now.Before(e.until) {
		return
	}
	e.step = min(max(2*e.step, minBackoff), maxBackoff)
	e.until = now.Add(e.step + rand.N(e.step/4))
}

// Good notes that an endpoint has answered. One without a wait is forgotten.
func (b *Backoff) Good(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.endpoints[endpoint]; e != nil && !time.Now().Before(e.until) {
		delete(b.endpoints, endpoint)
	}
}

// Remaining returns how long an endpoint gets no request.
func (b *Backoff) Remaining(endpoint string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.endpoints[endpoint]; e != nil {
		return max(time.Until(e.until), 0)
	}
	return 0
}

// Wait waits until an endpoint may get a request. After a long wait the first ones go one
// by one, so that all others learn from them.
func (b *Backoff) Wait(ctx context.Context, endpoint string) error {
	for {
		wait := b.Remaining(endpoint)
		if wait == 0 {
			return ctx.Err()
		}
		select {
		case <-time.After(wait + rand.N(wait/8+time.Millisecond)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
