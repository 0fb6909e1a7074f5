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
func (s *scheddNode) submissionStored(id roost.JobID, sub *queue.SubmittedJob) {
	_, text, _ := strings.Cut(sub.Key[strings.LastIndex(sub.Key, "job "):], " ")
	i, err := strconv.Atoi(text)
	if err != nil {
		panic("a submission with the key " + sub.Key)
	}
	s.jobs[id.Seq] = i
	u := &s.pool.users[i]
	if !u.stored {
		u.stored, u.unfinished = true, sub.Count
		s.pool.tasks += sub.Count
	}
	if s.pool.cfg.Observe == nil {
		return
	}
	st, _ := s.core.Queue().Status(id.Seq)
	s.pool.observe(audit.Event{Type: audit.SubmissionStored, Node: s.name, Key: sub.Key, Job: id, Tasks: sub.Count,
		Resources: st.Resources})
	if terms := s.pool.cfg.Jobs[i].Service; terms != nil {
		u.environment = terms.Environment
		s.pool.observe(audit.Event{Type: audit.ServiceStored, Job: id, Service: terms})
	}
}

// taskEnded handles the possible end of a task.
func (s *scheddNode) taskEnded(id roost.JobID, index int, code int32) {
	t := id.Task(index)
	st, ok := s.core.Queue().TaskStatus(t)
	if !ok || !st.Task.State.IsFinal() || s.ended[id.Seq][index] {
		return
	}
	if s.ended[id.Seq] == nil {
		s.ended[id.Seq] = map[int]bool{}
	}
	s.ended[id.Seq][index] = true
	u := &s.pool.users[s.jobs[id.Seq]]
	s.pool.endedTasks++
	if u.unfinished--; u.unfinished == 0 {
		s.pool.unfinished--
	}
	if st.Task.State == roost.Removed {
		s.pool.observe(audit.Event{Type: audit.Removed, Job: id, Index: index})
		return
	}
	a := roost.AttemptID{Task: t, Attempt: st.Task.Attempt}
	if !s.pool.cfg.Jobs[s.jobs[id.Seq]].Output { // no output, so all of it is here
		s.outputStored(a, nil)
	}
	s.pool.observe(audit.Event{Type: audit.Completed, Job: id, Index: index, Attempt: a.Attempt, Code: code})
}

// outputStored reports that all output of an attempt is on disk. Any file in came was not
// requested, because no job here names output files.
func (s *scheddNode) outputStored(a roost.AttemptID, came []*wire.FileEntry) {
	seen := audit.Event{Type: audit.OutputStored, Job: a.Task.Job, Index: a.Task.Index, Attempt: a.Attempt}
	if len(came) > 0 {
		seen.Detail = came[0].GetName()
	}
	s.pool.observe(seen)
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
func (s *scheddNode) tasksReopened(id roost.JobID) {
	s.pool.observe(audit.Event{Type: audit.Reopened, Job: id, Index: audit.AllTasks})
	u := &s.pool.users[s.jobs[id.Seq]]
	if n := len(s.ended[id.Seq]); n > 0 {
		if u.unfinished == 0 {
			s.pool.unfinished++
		}
		u.unfinished += n
		s.pool.endedTasks -= n
	}
	delete(s.ended, id.Seq)
}
