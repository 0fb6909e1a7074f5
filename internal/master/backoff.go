package master

import "time"

// The pauses between a daemon's death and its restart.
const (
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
	recoveryTime = time.Second // a daemon that served so long has recovered
)

// restartBackoff says how long to wait before a daemon is started again: not at all the
// first time, because most deaths are single ones and the queue is waiting; then longer
// and longer, because a daemon that cannot start would otherwise eat the machine.
type restartBackoff struct{ next time.Duration }

// nextDelay returns the pause after a death. Served is how long the daemon served, 0 if
// it never did.
func (r *restartBackoff) nextDelay(served time.Duration) time.Duration {
	if served >= recoveryTime {
		r.next = 0
	}
	pause := r.next
	r.next = min(max(2*r.next, minBackoff), maxBackoff)
	return pause
}
