package pool

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// took takes in that a submission is on disk.
func (s *scheddNode) took(id roost.JobID, sub *queue.Submission) {
	_, text, _ := strings.Cut(sub.Key[strings.LastIndex(sub.Key, "job "):], " ")
	i, err := strconv.Atoi(text)
	if err != nil {
		panic("a submission with the key " + sub.Key)
	}
	s.jobs[id.Seq] = i
	u := &s.p.users[i]
	if !u.taken {
		u.taken, u.open = true, sub.Count
		s.p.tasks += sub.Count
	}
	if s.p.cfg.Observe == nil {
		return
	}
	st, _ := s.core.Queue().Status(id.Seq)
	s.p.see(audit.Seen{What: audit.Taken, Node: s.name, Key: sub.Key, Job: id, Tasks: sub.Count, Resources: st.Resources})
}

// settled takes in that a task may have come to its end.
func (s *scheddNode) settled(id roost.JobID, index int, code int32) {
	t := id.Task(index)
	st, ok := s.core.Queue().TaskStatus(t)
	if !ok || !st.Task.State.Final() || s.ended[id.Seq][index] {
		return
	}
	if s.ended[id.Seq] == nil {
		s.ended[id.Seq] = map[int]bool{}
	}
	s.ended[id.Seq][index] = true
	u := &s.p.users[s.jobs[id.Seq]]
	s.p.over++
	if u.open--; u.open == 0 {
		s.p.unfinished--
	}
	if st.Task.State == roost.Removed {
		s.p.see(audit.Seen{What: audit.Removed, Job: id, Index: index})
		return
	}
	a := roost.AttemptID{Task: t, Attempt: st.Task.Attempt}
	if !s.p.cfg.Jobs[s.jobs[id.Seq]].Output { // there is none, and so all of it is here
		s.stored(a, nil)
	}
	s.p.see(audit.Seen{What: audit.Completed, Job: id, Index: index, Attempt: a.Attempt, Code: code})
}

// stored tells that all output of an attempt is here, and which of its files nobody has asked for: no job here names any.
func (s *scheddNode) stored(a roost.AttemptID, came []*wire.FileEntry) {
	seen := audit.Seen{What: audit.Stored, Job: a.Task.Job, Index: a.Task.Index, Attempt: a.Attempt}
	if len(came) > 0 {
		seen.Note = came[0].GetName()
	}
	s.p.see(seen)
}

// Done reports whether all jobs were submitted, or refused, and all their tasks have come to their end.
func (p *Pool) Done() bool {
	return p.unfinished == 0
}

// Refused lists why jobs were not taken.
func (p *Pool) Refused() (all []error) {
	for i := range p.users {
		if err := p.users[i].refused; err != nil {
			all = append(all, err)
		}
	}
	return all
}

// reopened takes in that tasks of a job are to run again.
func (s *scheddNode) reopened(id roost.JobID) {
	s.p.see(audit.Seen{What: audit.Reopened, Job: id, Index: audit.All})
	u := &s.p.users[s.jobs[id.Seq]]
	if n := len(s.ended[id.Seq]); n > 0 {
		if u.open == 0 {
			s.p.unfinished++
		}
		u.open += n
		s.p.over -= n
	}
	delete(s.ended, id.Seq)
}
