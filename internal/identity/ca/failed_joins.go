package ca

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on wrong secrets. They are no protection of the secrets, which nobody guesses,
// but of the log and the processor.
const (
	freeAttempts    = 5                // that an address has
	retryInterval   = 10 * time.Second // for each more
	maxTrackedAddrs = 4096             // addresses that are remembered
)

// failedJoins counts wrong secrets by address. An address whose tries are used up waits;
// others do not.
type failedJoins struct {
	mu      sync.Mutex
	resetAt map[netip.Addr]time.Time // when an address has all its tries again
}

// waitTime is for how long the address may not try, 0 if it may.
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

// evict makes room: those that have all their tries again go, and if that is not enough
// any one.
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
