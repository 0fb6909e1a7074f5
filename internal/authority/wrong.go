package authority

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds on wrong secrets. They are no protection of the secrets, which nobody guesses, but of the log and the processor.
const (
	freeTries  = 5                // that an address has
	tryAgain   = 10 * time.Second // for each more
	maxTracked = 4096             // addresses that are remembered
)

// wrong counts wrong secrets by address. An address whose tries are used up waits; others do not.
type wrong struct {
	mu   sync.Mutex
	full map[netip.Addr]time.Time // when an address has all its tries again
}

// wait is for how long the address may not try, 0 if it may.
func (w *wrong) wait(from netip.Addr, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(max(w.full[from].Sub(now), 0)-(freeTries-1)*tryAgain, 0)
}

// add counts a wrong secret.
func (w *wrong) add(from netip.Addr, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full == nil {
		w.full = map[netip.Addr]time.Time{}
	}
	if _, ok := w.full[from]; !ok && len(w.full) >= maxTracked {
		w.forget(now)
	}
	start := now
	if at := w.full[from]; at.After(now) {
		start = at
	}
	w.full[from] = start.Add(tryAgain)
}

// forget makes room: those that have all their tries again go, and if that is not enough any one.
func (w *wrong) forget(now time.Time) {
	var any netip.Addr
	for from, at := range w.full {
		if any = from; !at.After(now) {
			delete(w.full, from)
		}
	}
	if len(w.full) >= maxTracked {
		delete(w.full, any)
	}
}
