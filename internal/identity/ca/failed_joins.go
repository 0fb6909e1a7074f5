package ca

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on wrong secrets. They do not protect the secrets, which cannot be guessed, but
// the log and the CPU.
const (
	freeAttempts    = 5                // wrong secrets of an address without a wait
	retryInterval   = 10 * time.Second // wait for each further one
	maxTrackedAddrs = 4096             // addresses that are tracked
)

// failedJoins counts wrong secrets by address. An address that has used its attempts must
// wait; others need not.
type failedJoins struct {
	mu      sync.Mutex
	resetAt map[netip.Addr]time.Time // when an address has all its attempts again
}

// waitTime returns how long an address must wait, 0 if it need not.
func (w *failedJoins) waitTime(from netip.Addr, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(max(w.resetAt[from].Sub(now), 0)-(freeAttempts-1)*retryInterval, 0)
}

// recordFailure counts a wrong secret.
func (w *failedJoins) recordFailure(from netip.Addr, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resetAt == nil {
		w.resetAt = map[netip.Addr]time.Time{}
	}
	if _, ok := w.resetAt[from]; !ok && len(w.resetAt) >= maxTrackedAddrs {
		w.evict(now)
	}
	start := now
	if at := w.resetAt[from]; at.After(now) {
		start = at
	}
	w.resetAt[from] = start.Add(retryInterval)
}

// evict makes room. It removes addresses that have all their attempts again, or if there
// are none any other.
func (w *failedJoins) evict(now time.Time) {
	var any netip.Addr
	for from, at := range w.resetAt {
		if any = from; !at.After(now) {
			delete(w.resetAt, from)
		}
	}
	if len(w.resetAt) >= maxTrackedAddrs {
		delete(w.resetAt, any)
	}
}
