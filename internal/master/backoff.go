package master

import "time"

// The pauses between a daemon's death and its restart.
const (
	shortestRest = 100 * time.Millisecond
	longestRest  = 2 * time.Second
	calm         = time.Second // a daemon that served so long has recovered
)

// rest says how long to wait before a daemon is started again: not at all the first time, because most deaths are single ones and the
// queue is waiting; then longer and longer, because a daemon that cannot start would otherwise eat the machine.
type rest struct{ next time.Duration }

// after returns the pause after a death. Served is how long the daemon served, 0 if it never did.
func (r *rest) after(served time.Duration) time.Duration {
	if served >= calm {
		r.next = 0
	}
	pause := r.next
	r.next = min(max(2*r.next, shortestRest), longestRest)
	return pause
}
