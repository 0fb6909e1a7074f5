package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// jobReporter reports to the observer what is durable of the jobs of one queue, and
// counts their tasks.
type jobReporter struct {
	sim       *Pool
	queueName string
	state     func() *queue.Queue     // the queue with these events
	jobs      map[uint64]int          // by sequence number: index of the job in the config
	ended     map[uint64]map[int]bool // by sequence number: ended tasks by index
	// by sequence number: services that their users have removed
	removing map[uint64]bool
	// by sequence number: index of the job in the config, of jobs with schedules, those
	// that have left the queue too
	scheduled map[uint64]int
	flows     map[uint64]int  // likewise of flows
	parts     map[uint64]bool // by sequence number: jobs of parts of flows
}

func newJobReporter(p *Pool, name string, state func() *queue.Queue) jobReporter {
	return jobReporter{sim: p, queueName: name, state: state, jobs: map[uint64]int{},
		ended: map[uint64]map[int]bool{}, removing: map[uint64]bool{}, scheduled: map[uint64]int{},
		flows: map[uint64]int{}, parts: map[uint64]bool{}}
}

// reportCommitted reports durable events to the observer, and counts ended tasks.
func (s *jobReporter) reportCommitted(events []queue.JobEvent) {
	for _, e := range events {
		id := roost.JobID{Seq: e.Job, Host: s.queueName}
		switch e.Type {
		case queue.Submitted:
			s.submissionStored(id, e.Submission)
		case queue.Assigned:
			s.sim.observe(audit.Event{Type: audit.Assigned, Node: e.Node, Job: id, Index: e.Index, Attempt: e.Attempt,
				Until: time.Duration(e.Time)})
		case queue.Ended, queue.Lost:
			var code int32
			if e.Exit != nil {
				code = e.Exit.Code
			}
			s.reportOwnEnd(id, &e)
			s.taskEnded(id, e.Index, code)
		case queue.Held:
			s.reportStopRequest(id, &e)
		case queue.RemovalRequested, queue.Dropped:
			s.noteRemoval(id)
			s.reportStopRequest(id, &e)
			s.state().EachTask(queue.TaskSelector{Job: id}, func(st queue.JobStatus) bool {
				// a removed task that ended by itself is reported with its exit code
				if st.Task.State == roost.Removed {
					s.taskEnded(id, st.Task.Index, 0)
				}
				return true
			})
		case queue.Retried:
			s.tasksReopened(id)
		case queue.Started, queue.Revised, queue.UpdateChanged, queue.Replaced, queue.Evicted,
			queue.BecameReady, queue.BecameUnready, queue.SurgeChanged, queue.Scaled, queue.Altered:
			s.reportService(id, &e)
		case queue.Resized, queue.ResizeRefused:
			s.reportSize(id, &e)
		case queue.Ticked:
			s.sim.observe(audit.Event{Type: audit.RunDecided, Job: id, Instant: e.Instant,
				Of: roost.JobID{Seq: e.Run, Host: s.queueName}})
		case queue.FlowAdvanced:
			s.reportFlow(id, &e)
		case queue.TickSkipped:
			s.sim.observe(audit.Event{Type: audit.RunSkipped, Job: id, Instant: e.Instant, Detail: e.Reason})
		case queue.Purged:
			s.sim.observe(audit.Event{Type: audit.Archived, Job: id})
			delete(s.ended, e.Job)
			delete(s.jobs, e.Job)
			delete(s.removing, e.Job)
			delete(s.parts, e.Job)
		}
	}
}

// reportOwnEnd reports that an attempt of a service has ended, and whether by itself.
func (s *jobReporter) reportOwnEnd(id roost.JobID, e *queue.JobEvent) {
	if s.isService(id) {
		s.sim.observe(audit.Event{Type: audit.TaskUnready, Job: id, Index: e.Index, Attempt: e.Attempt})
	}
	if s.isService(id) && e.Type == queue.Ended && e.Exit.Cause == queue.CauseExited {
		s.sim.observe(audit.Event{Type: audit.EndedByItself, Job: id, Index: e.Index, Attempt: e.Attempt,
			Until: time.Duration(e.Time)})
	}
}

// reportService reports what concerns services alone.
func (s *jobReporter) reportService(id roost.JobID, e *queue.JobEvent) {
	if !s.isService(id) {
		return
	}
	s.noteRevision(id, e)
	switch e.Type {
	case queue.Started:
		if s.sim.cfg.Jobs[s.jobs[id.Seq]].Health == nil { // it has no checks, so it is ready
			s.sim.observe(audit.Event{Type: audit.TaskReady, Job: id, Index: e.Index, Attempt: e.Attempt})
		}
	case queue.BecameReady:
		s.sim.observe(audit.Event{Type: audit.TaskReady, Job: id, Index: e.Index, Attempt: e.Attempt})
	case queue.BecameUnready:
		if e.Force { // it is ended for a check
			s.reportStop(id, e.Index, true, "")
		}
		seen := audit.Event{Type: audit.TaskUnready, Job: id, Index: e.Index}
		if e.ServiceState == roost.ServiceLost {
			seen.Attempt = e.Attempt
		}
		s.sim.observe(seen)
	case queue.Replaced:
		for _, span := range e.Ranges {
			for i := span.First; i <= span.Last; i++ {
				s.reportStop(id, i, e.Planned, audit.OfUpdate)
			}
		}
	case queue.Evicted:
		s.reportStop(id, e.Index, e.Planned, "")
	case queue.SurgeChanged:
		u := s.userOf(id)
		u.extra = e.Submission.Count - u.count
		s.reportCount(id)
	case queue.Scaled, queue.Altered:
		s.noteCount(id, e)
	default:
		s.noteCount(id, e)
		s.reportUpdate(id, e)
	}
}

// reportSize reports what an attempt has by the job queue, when its machine has answered
// about that.
func (s *jobReporter) reportSize(id roost.JobID, e *queue.JobEvent) {
	a := roost.AttemptID{Task: id.Task(e.Index), Attempt: e.Attempt}
	if _, size, live := s.state().AttemptSize(a); live {
		s.sim.observe(audit.Event{Type: audit.SizeRecorded, Job: id, Index: e.Index, Attempt: e.Attempt,
			Resources: size})
	}
}

// userOf returns the submission of a job on disk.
func (s *jobReporter) userOf(id roost.JobID) *userSubmission { return &s.sim.users[s.jobs[id.Seq]] }

// noteCount follows how many tasks a service is to have.
func (s *jobReporter) noteCount(id roost.JobID, e *queue.JobEvent) {
	if e.Submission != nil && e.Submission.Count > 0 {
		s.userOf(id).count = e.Submission.Count
		s.reportCount(id)
	}
}

// reportCount reports how many tasks a service is to have.
func (s *jobReporter) reportCount(id roost.JobID) {
	u := s.userOf(id)
	s.sim.observe(audit.Event{Type: audit.CountSet, Job: id, Tasks: u.count, Extra: u.extra})
}

// noteRemoval notes that a job is removed. Of a service all tasks that it ever had count
// as its tasks from now on.
func (s *jobReporter) noteRemoval(id roost.JobID) {
	if !s.isService(id) || s.removing[id.Seq] {
		return
	}
	s.removing[id.Seq] = true
	if s.sim.cfg.Jobs[s.jobs[id.Seq]].InsideOf > 0 { // perhaps with its alloc set
		s.sim.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks, Detail: audit.Removal})
	}
	u := s.userOf(id)
	if st, ok := s.state().Status(id.Seq); ok && st.Tasks > u.unfinished {
		s.sim.tasks += st.Tasks - u.unfinished
		u.unfinished = st.Tasks
	}
}

// reportStop reports that a task of a service is to stop, and go on in another way.
func (s *jobReporter) reportStop(id roost.JobID, index int, planned bool, cause string) {
	seen := audit.Event{Type: audit.Replaced, Job: id, Index: index, Detail: cause}
	if planned {
		seen.Type = audit.PlannedStop
	}
	s.sim.observe(seen)
}

// reportStopRequest reports that the tasks of a service end because its user asks for
// that. What Roost itself holds goes on in its update.
func (s *jobReporter) reportStopRequest(id roost.JobID, e *queue.JobEvent) {
	switch {
	case !s.isService(id) || e.Type == queue.Held && e.RequestedBy == "":
	case len(e.Ranges) == 0:
		s.sim.observe(audit.Event{Type: audit.StopRequested, Job: id, Index: audit.AllTasks})
	default:
		for _, span := range e.Ranges {
			for i := span.First; i <= span.Last; i++ {
				s.sim.observe(audit.Event{Type: audit.StopRequested, Job: id, Index: i})
			}
		}
	}
}

// reportUpdate reports that the update of a service is in another state.
func (s *jobReporter) reportUpdate(id roost.JobID, e *queue.JobEvent) {
	u := &s.sim.users[s.jobs[id.Seq]]
	if e.Submission != nil {
		ad, err := classad.Parse(e.Submission.Ad)
		if err != nil {
			panic(err) // it was the queue's
		}
		if list, ok := ad.Strings(roost.AttrEnvironment); ok && len(list) > 0 {
			u.environment = list[0]
		}
		if cores, ok := ad.Real(roost.AttrRequestCpus); ok {
			u.size.CPU = roost.MilliCPU(cores * 1000)
		}
		if memory, ok := ad.Int(roost.AttrRequestMemory); ok {
			u.size.Memory = roost.Bytes(memory) * roost.MiB
		}
	}
	seen := audit.Event{Type: audit.UpdateWaits, Job: id, Detail: e.Update.State.String()}
	switch e.Update.State {
	case update.Rolling, update.Undoing:
		seen.Type, seen.Detail, seen.Resources = audit.UpdateMoves, u.environment, u.size
		seen.Revision = e.Update.Target()
	case update.Done, update.Undone:
		seen.Type, seen.Detail, seen.Resources = audit.UpdateDone, u.environment, u.size
	}
	s.sim.observe(seen)
	for _, i := range e.Update.Failed {
		s.sim.observe(audit.Event{Type: audit.TaskFailed, Job: id, Index: i})
	}
}

// isService reports whether a job on disk is a service.
func (s *jobReporter) isService(id roost.JobID) bool {
	i, ok := s.jobs[id.Seq]
	return ok && s.sim.cfg.Jobs[i].Service != nil
}
