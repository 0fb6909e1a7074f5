package pool

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// submissionStored handles a submission that is on disk.
func (s *jobReporter) submissionStored(id roost.JobID, sub *queue.SubmittedJob) {
	if by, instant, ok := queue.RunOfKey(sub.Key); ok {
		s.runStored(id, sub, by, instant)
		return
	}
	if p, ok := queue.FlowPartOfKey(sub.Key); ok {
		s.partStored(id, sub, p)
		return
	}
	_, text, _ := strings.Cut(sub.Key[strings.LastIndex(sub.Key, "job "):], " ")
	i, err := strconv.Atoi(text)
	if err != nil {
		panic("a submission with the key " + sub.Key)
	}
	if s.jobs[id.Seq] = i; s.sim.cfg.Jobs[i].Schedule != nil {
		s.scheduled[id.Seq] = i
	}
	if s.sim.cfg.Jobs[i].Flow != nil {
		s.flows[id.Seq] = i
	}
	u := &s.sim.users[i]
	if !u.stored {
		u.stored, u.unfinished = true, sub.Count
		s.sim.tasks += sub.Count
	}
	if s.sim.cfg.Observe == nil {
		return
	}
	st, _ := s.state().Status(id.Seq)
	s.sim.observe(audit.Event{Type: audit.SubmissionStored, Node: s.queueName, Key: sub.Key, Job: id, Tasks: sub.Count,
		Resources: st.Resources, Inside: uint64(s.sim.cfg.Jobs[i].InsideOf), Schedule: s.sim.cfg.Jobs[i].Schedule,
		Flow: s.sim.cfg.Jobs[i].Flow})
	if terms := s.sim.cfg.Jobs[i].Service; terms != nil {
		u.environment, u.size, u.count, u.extra = terms.Environment, st.Resources, sub.Count, 0
		s.sim.observe(audit.Event{Type: audit.ServiceStored, Job: id, Service: terms})
		u.ad = parseLoggedAd(sub.Ad)
		s.reportRevision(id, 1)
	}
}

// runStored handles a run of a schedule that is on disk. Its tasks count as those of the
// job of which it was made.
func (s *jobReporter) runStored(id roost.JobID, sub *queue.SubmittedJob, by uint64, instant int64) {
	i := s.scheduled[by]
	s.jobs[id.Seq] = i
	u := &s.sim.users[i]
	if u.unfinished += sub.Count; u.unfinished == sub.Count {
		s.sim.unfinished++
	}
	s.sim.tasks += sub.Count
	st, _ := s.state().Status(id.Seq)
	s.sim.observe(audit.Event{Type: audit.SubmissionStored, Node: s.queueName, Key: sub.Key, Job: id, Tasks: sub.Count,
		Resources: st.Resources, Of: roost.JobID{Seq: by, Host: s.queueName}, Instant: instant})
}

// taskEnded handles the possible end of a task.
func (s *jobReporter) taskEnded(id roost.JobID, index int, code int32) {
	t := id.Task(index)
	st, ok := s.state().TaskStatus(t)
	if !ok || !st.Task.State.IsFinal() || s.ended[id.Seq][index] || s.isService(id) && !s.removing[id.Seq] {
		return // a task of a service that has ended may be wanted again, until its user removes the job
	}
	if s.ended[id.Seq] == nil {
		s.ended[id.Seq] = map[int]bool{}
	}
	s.ended[id.Seq][index] = true
	u := &s.sim.users[s.jobs[id.Seq]]
	s.sim.endedTasks++
	if u.unfinished--; u.unfinished == 0 {
		s.sim.unfinished--
	}
	if st.Task.State == roost.Removed {
		s.sim.observe(audit.Event{Type: audit.Removed, Job: id, Index: index})
		return
	}
	if s.isFlow(id) {
		s.reportFlowEnded(id, st)
		return
	}
	a := roost.AttemptID{Task: t, Attempt: st.Task.Attempt}
	if !s.sim.cfg.Jobs[s.jobs[id.Seq]].Output { // no output, so all of it is here
		s.outputStored(a, nil)
	}
	s.sim.observe(audit.Event{Type: audit.Completed, Job: id, Index: index, Attempt: a.Attempt, Code: code})
}

// outputStored reports that all output of an attempt is on disk. Any file in came was not
// requested, because no job here names output files.
func (s *jobReporter) outputStored(a roost.AttemptID, came []*wire.FileEntry) {
	seen := audit.Event{Type: audit.OutputStored, Job: a.Task.Job, Index: a.Task.Index, Attempt: a.Attempt}
	if len(came) > 0 {
		seen.Detail = came[0].GetName()
	}
	s.sim.observe(seen)
}

// AllEnded reports whether all jobs were submitted or refused, and all their tasks have
// ended.
func (p *Pool) AllEnded() bool {
	return p.unfinished == 0
}

// Refused lists the reasons of refused submissions.
func (p *Pool) Refused() (all []error) {
	for i := range p.users {
		if err := p.users[i].refused; err != nil {
			all = append(all, err)
		}
	}
	return all
}

// tasksReopened handles that tasks of a job run again.
func (s *jobReporter) tasksReopened(id roost.JobID) {
	s.sim.observe(audit.Event{Type: audit.Reopened, Job: id, Index: audit.AllTasks})
	u := &s.sim.users[s.jobs[id.Seq]]
	if n := len(s.ended[id.Seq]); n > 0 {
		if u.unfinished == 0 {
			s.sim.unfinished++
		}
		u.unfinished += n
		s.sim.endedTasks -= n
	}
	delete(s.ended, id.Seq)
}
