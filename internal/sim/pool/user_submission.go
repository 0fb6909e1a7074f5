package pool

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// programPrefix is the prefix of a simulated program's name; the job's index follows.
const programPrefix = "/simulated/"

// userSubmission is the state of a submission.
type userSubmission struct {
	id           roost.JobID   // zero: none was shown yet
	shownAt      time.Duration // when the id was shown
	firstStarted time.Duration // when its first task began
	lastEnded    time.Duration // when its last process ended
	attempts     int           // number of attempts
	running      int
	unfinished   int // number of unfinished tasks
	stored       bool
	refused      error
	askedLife    uint32 // life of the schedd that was asked, plus one; 0: none
	resubmitted  bool
	releases     int    // number of releases requested
	environment  string // of a service: what its tasks are to have
}

// callerOf returns the user who submits a job.
func (p *Pool) callerOf(i int) queue.CallerIdentity {
	j := &p.cfg.Jobs[i]
	name := j.Owner
	if name == "" {
		name = "user"
	}
	return queue.CallerIdentity{User: name, UID: 1000, GID: 1000, Host: p.schedds[j.Schedd].name}
}

// submitSpec returns the submission of a job.
func (p *Pool) submitSpec(i int) queue.SubmitSpec {
	spec := p.cfg.Jobs[i].Spec
	spec.Ad = spec.Ad.Copy()
	spec.Count = max(spec.Count, 1)
	spec.Ad.SetString(roost.AttrCmd, programPrefix+strconv.Itoa(i))
	spec.Ad.Delete(roost.AttrScript)
	spec.Ad.Delete(roost.AttrScriptFile)
	return spec
}

// submitTimeout is how long a user waits for an answer before submitting again with the
// same key.
const submitTimeout = 5 * time.Second

// submitJob submits a job, and again until its id is shown.
func (p *Pool) submitJob(i int) {
	u := &p.users[i]
	s := p.schedds[p.cfg.Jobs[i].Schedd]
	if u.refused != nil || !u.id.IsZero() && !u.resubmitted {
		return
	}
	if s.isUp && s.nextDaemonTime() <= p.loop.Now() && u.askedLife != s.daemonLife+1 {
		u.askedLife = s.daemonLife + 1
		err := s.core.Submit(s.timeOf(), p.callerOf(i), "job "+strconv.Itoa(i), []queue.SubmitSpec{p.submitSpec(i)},
			func(ids []roost.JobID, _ bool) {
				p.showID(i, ids)
			})
		if err != nil {
			u.refused = fmt.Errorf("job %d: %w", i, err)
			p.unfinished--
			return
		}
		s.endTurn()
	}
	if u.id.IsZero() || u.resubmitted {
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + submitTimeout, Place: s.id, Kind: evSubmit,
			Number: uint64(i)})
	}
}

// showID shows a user the id of the job.
func (p *Pool) showID(i int, ids []roost.JobID) {
	j, u := &p.cfg.Jobs[i], &p.users[i]
	s := p.schedds[j.Schedd]
	u.id, u.resubmitted = ids[0], false
	u.shownAt = p.loop.Now()
	for _, id := range ids {
		p.observe(audit.Event{Type: audit.IDShown, Node: s.name, Key: fmt.Sprintf("%d:job %d", p.callerOf(i).UID, i),
			Job: id, Tasks: max(j.Spec.Count, 1)})
	}
	if p.passFailpoint(s.hostNode, failpoint.ScheddAfterAnswer) {
		return
	}
	if j.ResubmitAfter > 0 {
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + j.ResubmitAfter, Place: s.id, Kind: evFunc,
			Payload: func() {
				if u.resubmitted = true; j.ResubmitAfter > 0 {
					u.askedLife = 0
					j.ResubmitAfter = 0
					p.submitJob(i)
				}
			}})
	}
}

// performAction performs a user's action, as soon as the id is known.
func (p *Pool) performAction(n int) {
	a := &p.cfg.Actions[n]
	u, s := &p.users[a.Job], p.schedds[p.cfg.Jobs[a.Job].Schedd]
	if u.refused != nil {
		return
	}
	if u.id.IsZero() || !s.isUp || s.nextDaemonTime() > p.loop.Now() {
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + time.Second, Place: s.id, Kind: evAction,
			Number: uint64(n)})
		return
	}
	id, life, letGo := u.id, s.daemonLife, u.releases
	if a.Verb == wire.ActRequest_RELEASE {
		// refused for now; the simulated administrator releases it
		if _, unsure := s.core.Queue().UnrecordedLease(id.Seq); unsure {
			return
		}
		u.releases++
		p.observe(audit.Event{Type: audit.Released, Job: id, Index: audit.AllTasks})
	}
	err := s.core.Act(s.timeOf(), p.actRequest(a), p.callerOf(a.Job), queue.TaskSelector{Job: id}, func() {
		switch {
		case s.daemonLife != life || u.releases != letGo: // released since: that report supersedes this one
		case a.Verb == wire.ActRequest_HOLD:
			p.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks})
		case a.Verb == wire.ActRequest_REMOVE:
			p.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks, Detail: audit.Removal})
		}
	})
	if err == nil {
		s.endTurn()
	}
}

// actRequest returns what a user's action asks for.
func (p *Pool) actRequest(a *UserAction) *wire.ActRequest {
	switch {
	case a.Command != "":
		return &wire.ActRequest{Verb: wire.ActRequest_UPDATE, Update: &wire.UpdateOrder{Command: a.Command}}
	case a.Environment != "":
		spec := p.submitSpec(a.Job)
		spec.Ad.SetStrings(roost.AttrEnvironment, []string{a.Environment})
		return &wire.ActRequest{Verb: wire.ActRequest_UPDATE,
			Update: &wire.UpdateOrder{Ad: spec.Ad.String(), Count: uint32(spec.Count)}}
	}
	return &wire.ActRequest{Verb: a.Verb}
}
