package proof

import (
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost"
)

// Bounds on passwords that are tried.
const (
	maxAttempts   = 5 // of an address, and for an account
	attemptWindow = time.Minute
	maxCounted    = 16384
)

// attemptCounter counts tries of passwords by address and by account. The web daemon
// counts by address, too, but one that was taken over would not.
type attemptCounter struct {
	mu sync.Mutex
	of map[string][]time.Time
}

func newAttemptCounter() *attemptCounter { return &attemptCounter{of: map[string][]time.Time{}} }

// count counts a try under each of some names, or refuses it.
func (c *attemptCounter) count(now time.Time, names ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, tries := range c.of {
		for len(tries) > 0 && now.Sub(tries[0]) >= attemptWindow {
			tries = tries[1:]
		}
		if c.of[name] = tries; len(tries) == 0 {
			delete(c.of, name)
		}
	}
	for _, name := range names {
		if tries := c.of[name]; len(tries) >= maxAttempts {
			return fmt.Errorf("login: %w: %d passwords were tried within a minute for %s; try again in %v",
				roost.Exhausted, len(tries), name, (attemptWindow - now.Sub(tries[0])).Round(time.Second))
		}
	}
	if len(c.of)+len(names) > maxCounted {
		return fmt.Errorf("login: %w: very many passwords are being tried; try again in a minute", roost.Exhausted)
	}
	for _, name := range names {
		c.of[name] = append(c.of[name], now)
	}
	return nil
}
