package pool

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/queue"
)

// programs is before the number of a job in the name of its program.
const programs = "/simulated/"

// user is what became of a submission.
type user struct {
	id      roost.JobID   // zero: none was shown yet
	shown   time.Duration // when it was
	first   time.Duration // when the first of its tasks began
	last    time.Duration // when the last one ended
	begun   int           // attempts
	lives   int
	open    int // tasks that have not come to their end
	taken   bool
	refused error
	asked   uint32 // life of the schedd that was asked, and one
	again   bool
	letGo   int // how often he has asked for that
}

// who is the user that submits a job.
func (p *Pool) who(i int) queue.Submitter {
	j := &p.cfg.Jobs[i]
	name := j.Owner
	if name == "" {
		name = "user"
	}
	return queue.Submitter{User: name, UID: 1000, GID: 1000, Host: p.schedds[j.Schedd].name}
}

// spec is what he submits.
func (p *Pool) spec(i int) queue.Spec {
	spec := p.cfg.Jobs[i].Spec
	spec.Ad = spec.Ad.Copy()
	spec.Count = max(spec.Count, 1)
	spec.Ad.SetString(roost.AttrCmd, programs+strconv.Itoa(i))
	spec.Ad.Delete(roost.AttrScript)
	spec.Ad.Delete(roost.AttrScriptFile)
	return spec
}

// patience is how long a user waits for an answer before he asks again, with the same key.
const patience = 5 * time.Second

// submit has a job submitted. As long as no id was shown it is tried again.
func (p *Pool) submit(i int) {
	u := &p.users[i]
	s := p.schedds[p.cfg.Jobs[i].Schedd]
	if u.refused != nil || !u.id.IsZero() && !u.again {
		return
	}
	if s.up && s.until() <= p.k.Now() && u.asked != s.life+1 {
		u.asked = s.life + 1
		err := s.core.Submit(s.moment(), p.who(i), "job "+strconv.Itoa(i), []queue.Spec{p.spec(i)}, func(ids []roost.JobID, _ bool) { p.printed(i, ids) })
		if err != nil {
			u.refused = fmt.Errorf("job %d: %w", i, err)
			p.unfinished--
			return
		}
		s.turn()
	}
	if u.id.IsZero() || u.again {
		p.k.Plan(kernel.Event{At: p.k.Now() + patience, Place: s.id, Kind: evSubmit, Number: uint64(i)})
	}
}

// printed shows a user the id of his job.
func (p *Pool) printed(i int, ids []roost.JobID) {
	j, u := &p.cfg.Jobs[i], &p.users[i]
	s := p.schedds[j.Schedd]
	u.id, u.again = ids[0], false
	u.shown = p.k.Now()
	for _, id := range ids {
		p.see(audit.Seen{What: audit.Printed, Node: s.name, Key: fmt.Sprintf("%d:job %d", p.who(i).UID, i), Job: id, Tasks: max(j.Spec.Count, 1)})
	}
	if p.point(s.node, fault.ScheddAfterAnswer) {
		return
	}
	if j.Again > 0 {
		p.k.Plan(kernel.Event{At: p.k.Now() + j.Again, Place: s.id, Kind: evCall, With: func() {
			if u.again = true; j.Again > 0 {
				u.asked = 0
				j.Again = 0
				p.submit(i)
			}
		}})
	}
}

// act does what a user wishes, as soon as he knows the id.
func (p *Pool) act(n int) {
	a := &p.cfg.Acts[n]
	u, s := &p.users[a.Job], p.schedds[p.cfg.Jobs[a.Job].Schedd]
	if u.refused != nil {
		return
	}
	if u.id.IsZero() || !s.up || s.until() > p.k.Now() {
		p.k.Plan(kernel.Event{At: p.k.Now() + time.Second, Place: s.id, Kind: evAct, Number: uint64(n)})
		return
	}
	id, life, letGo := u.id, s.life, u.letGo
	if a.Verb == wire.ActRequest_RELEASE {
		if _, unsure := s.core.Queue().Unsure(id.Seq); unsure { // it is refused for now, and somebody else sees to it
			return
		}
		u.letGo++
		p.see(audit.Seen{What: audit.LetGo, Job: id, Index: audit.All})
	}
	err := s.core.Act(s.moment(), a.Verb, p.who(a.Job), queue.Target{Job: id}, func() {
		switch {
		case s.life != life || u.letGo != letGo: // he has let it go since, and is told both
		case a.Verb == wire.ActRequest_HOLD:
			p.see(audit.Seen{What: audit.HeldBack, Job: id, Index: audit.All})
		case a.Verb == wire.ActRequest_REMOVE:
			p.see(audit.Seen{What: audit.HeldBack, Job: id, Index: audit.All, Note: audit.Removal})
		}
	})
	if err == nil {
		s.turn()
	}
}

// committed tells the observer of facts that are on disk, and counts what has come to its end.
func (s *scheddNode) committed(b *schedd.Batch) {
	for _, e := range b.Events() {
		id := roost.JobID{Seq: e.Job, Host: s.name}
		switch e.What {
		case queue.Submitted:
			s.took(id, e.Submission)
		case queue.Assigned:
			s.p.see(audit.Seen{What: audit.Assigned, Node: e.Node, Job: id, Index: e.Index, Attempt: e.Attempt})
		case queue.Ended, queue.Lost:
			var code int32
			if e.Exit != nil {
				code = e.Exit.Code
			}
			s.settled(id, e.Index, code)
		case queue.RemovalRequested, queue.Dropped:
			s.core.Queue().EachTask(queue.Target{Job: id}, func(st queue.Status) bool {
				if st.Task.State == roost.Removed { // one that has ended all the same is told of with its code
					s.settled(id, st.Task.Index, 0)
				}
				return true
			})
		case queue.Retried:
			s.reopened(id)
		case queue.Purged:
			s.p.see(audit.Seen{What: audit.Left, Job: id})
			delete(s.ended, e.Job)
			delete(s.jobs, e.Job)
		}
	}
}
