package master

import "time"

// The delays between a daemon's death and its restart.
const (
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
	recoveryTime = time.Second // a daemon that served this long has recovered
)

// restartBackoff computes the delay before a daemon is restarted. The first restart has
// none, because most deaths are single ones and users wait. Then delays grow, because a
// daemon that cannot start would otherwise use up the machine.
type restartBackoff struct{ next time.Duration }

// nextDelay returns the delay after a death. served is how long the daemon served, 0 if
// it never did.
func (r *restartBackoff) nextDelay(served time.Duration) time.Duration {
	if served >= recoveryTime {
		r.next = 0
	}
	pause := r.next
	r.next = min(max(2*r.next, minBackoff), maxBackoff)
	return pause
}
