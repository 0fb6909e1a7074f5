package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// reportCommitted reports durable events to the observer, and counts ended tasks.
func (s *scheddNode) reportCommitted(b *schedd.CommitBatch) {
	for _, e := range b.Events() {
		id := roost.JobID{Seq: e.Job, Host: s.name}
		switch e.Type {
		case queue.Submitted:
			s.submissionStored(id, e.Submission)
		case queue.Assigned:
			s.pool.observe(audit.Event{Type: audit.Assigned, Node: e.Node, Job: id, Index: e.Index, Attempt: e.Attempt,
				Until: time.Duration(e.Time)})
		case queue.Ended, queue.Lost:
			var code int32
			if e.Exit != nil {
				code = e.Exit.Code
			}
			s.reportOwnEnd(id, &e)
			s.taskEnded(id, e.Index, code)
		case queue.RemovalRequested, queue.Dropped:
			s.core.Queue().EachTask(queue.TaskSelector{Job: id}, func(st queue.JobStatus) bool {
				// a removed task that ended by itself is reported with its exit code
				if st.Task.State == roost.Removed {
					s.taskEnded(id, st.Task.Index, 0)
				}
				return true
			})
		case queue.Retried:
			s.tasksReopened(id)
		case queue.Started, queue.Revised, queue.UpdateChanged, queue.Replaced:
			s.reportService(id, &e)
		case queue.Purged:
			s.pool.observe(audit.Event{Type: audit.Archived, Job: id})
			delete(s.ended, e.Job)
			delete(s.jobs, e.Job)
		}
	}
}

// reportOwnEnd reports that an attempt of a service has ended by itself.
func (s *scheddNode) reportOwnEnd(id roost.JobID, e *queue.JobEvent) {
	if s.isService(id) && e.Type == queue.Ended && e.Exit.Cause == queue.CauseExited {
		s.pool.observe(audit.Event{Type: audit.EndedByItself, Job: id, Index: e.Index, Attempt: e.Attempt,
			Until: time.Duration(e.Time)})
	}
}

// reportService reports what concerns services alone.
func (s *scheddNode) reportService(id roost.JobID, e *queue.JobEvent) {
	if !s.isService(id) {
		return
	}
	switch e.Type {
	case queue.Started: // it has no checks, so it is ready
		s.pool.observe(audit.Event{Type: audit.TaskReady, Job: id, Index: e.Index, Attempt: e.Attempt})
	case queue.Replaced:
		for _, span := range e.Ranges {
			for i := span.First; i <= span.Last; i++ {
				seen := audit.Event{Type: audit.Replaced, Job: id, Index: i}
				if e.Planned {
					seen.Type = audit.PlannedStop
				}
				s.pool.observe(seen)
			}
		}
	default:
		s.reportUpdate(id, e)
	}
}

// reportUpdate reports that the update of a service is in another state.
func (s *scheddNode) reportUpdate(id roost.JobID, e *queue.JobEvent) {
	u := &s.pool.users[s.jobs[id.Seq]]
	if e.Submission != nil {
		ad, err := classad.Parse(e.Submission.Ad)
		if err != nil {
			panic(err) // it was the queue's
		}
		if list, ok := ad.Strings(roost.AttrEnvironment); ok && len(list) > 0 {
			u.environment = list[0]
		}
	}
	seen := audit.Event{Type: audit.UpdateWaits, Job: id, Detail: e.Update.State.String()}
	switch e.Update.State {
	case update.Rolling, update.Undoing:
		seen.Type, seen.Detail = audit.UpdateMoves, u.environment
	case update.Done, update.Undone:
		seen.Type, seen.Detail = audit.UpdateDone, u.environment
	}
	s.pool.observe(seen)
	for _, i := range e.Update.Failed {
		s.pool.observe(audit.Event{Type: audit.TaskFailed, Job: id, Index: i})
	}
}

// isService reports whether a job on disk is a service.
func (s *scheddNode) isService(id roost.JobID) bool {
	i, ok := s.jobs[id.Seq]
	return ok && s.pool.cfg.Jobs[i].Service != nil
}
