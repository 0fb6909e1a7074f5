package schedd

import "time"

// makeDueRuns makes the runs of schedules that are due. A full disk takes no jobs: then
// they are made later, as far as the deadlines of their schedules allow.
func makeDueRuns(s *Schedd, now time.Time) {
	if !s.queue.HasDueRuns(now) || s.reserve != nil && s.reserve.RefusalReason() != nil {
		return
	}
	limits := s.submitLimits()
	for events := s.queue.DueRuns(now, limits); len(events) > 0; events = s.queue.DueRuns(now, limits) {
		s.commitEvents(events...)
	}
}
