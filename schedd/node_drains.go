package schedd

import (
	"time"
)

// evictFromDrained ends attempts on drained machines, as far as the budgets of their jobs
// allow.
func evictFromDrained(s *Schedd, now time.Time) {
	for _, d := range s.queue.Drains(now) {
		s.commitEvents(s.queue.EvictAttempts(now, d, s.dispatch.AttemptsOn(d.Node))...)
	}
}
