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

// flowSteps bounds the steps of flows that the loop takes at once. The next ones come
// when these are on disk, so that others are served meanwhile.
const flowSteps = 4096

// advanceFlows takes the steps of flows that are due: their nodes begin and end. A full
// disk begins none.
func advanceFlows(s *Schedd, now time.Time) {
	if !s.queue.HasDueFlows() || s.flowsCommit {
		return
	}
	mayBegin, limits := s.reserve == nil || s.reserve.RefusalReason() == nil, s.submitLimits()
	for range flowSteps {
		events := s.queue.AdvanceFlows(now, limits, mayBegin)
		if len(events) == 0 {
			return
		}
		s.commitEvents(events...)
	}
	s.flowsCommit = true
	s.afterCommit(func() { s.effects.postLater(func(time.Time) { s.flowsCommit = false }) })
}
