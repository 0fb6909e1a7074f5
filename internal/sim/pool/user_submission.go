package pool

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
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
	askedLife    uint32 // life of the schedd that was asked; 0: none
	inquiries    int    // number of times that the leader of the cell's queue was looked for
	resubmitted  bool
	releases     int    // number of releases requested
	environment  string // of a service: what its tasks are to have
	size         roost.Resources
	ad           *classad.Ad            // of a service: as the log has it
	count, extra int                    // of a service: tasks that are asked for, and those beyond them for an update
	revised      []func(ad *classad.Ad) // of a service: what its user has changed in the job file so far
}

// callerOf returns the user who submits a job.
func (p *Pool) callerOf(i int) queue.CallerIdentity {
	j := &p.cfg.Jobs[i]
	name := j.Owner
	if name == "" {
		name = "user"
	}
	who := queue.CallerIdentity{User: name, UID: 1000, GID: 1000, Host: p.schedds[j.Schedd].name}
	if j.InCell {
		who.Host, who.Origin = cellQueueName, who.Host
	}
	return who
}

// queueNode returns the node that answers for the queue of a job, nil if none does. It is
// its schedd, or the leader of the cell's queue. A user who has asked a leader in
// vain asks another member.
func (p *Pool) queueNode(i int) *scheddNode {
	if j := &p.cfg.Jobs[i]; !j.InCell {
		if s := p.schedds[j.Schedd]; s.isUp && s.nextDaemonTime() <= p.loop.Now() {
			return s
		}
		return nil
	}
	p.users[i].inquiries++
	if m := p.cell.leader(p.users[i].inquiries); m != nil {
		return &m.scheddNode
	}
	return nil
}

// submitSpec returns the submission of a job.
func (p *Pool) submitSpec(i int) queue.SubmitSpec {
	spec := p.cfg.Jobs[i].Spec
	spec.Ad = spec.Ad.Copy()
	spec.Count = max(spec.Count, 1)
	spec.Ad.SetString(roost.AttrCmd, programPrefix+strconv.Itoa(i))
	if set := p.cfg.Jobs[i].InsideOf; set > 0 {
		spec.Ad.SetString(roost.AttrInAlloc, p.users[set-1].id.String())
	}
	spec.Ad.Delete(roost.AttrScript)
	spec.Ad.Delete(roost.AttrScriptFile)
	if terms := p.cfg.Jobs[i].Flow; terms != nil {
		return flowSpec(terms, spec)
	}
	return spec
}

// jobOf returns the index of a job on the disk of a schedd, or in the cell's queue.
func (p *Pool) jobOf(id roost.JobID) int {
	if id.Host == cellQueueName && p.cell != nil {
		if i, ok := p.cell.jobs[id.Seq]; ok {
			return i
		}
	}
	for _, s := range p.schedds {
		if i, ok := s.jobs[id.Seq]; ok && s.name == id.Host {
			return i
		}
	}
	panic(fmt.Sprintf("pool: an attempt of %v runs, which is on no disk", id))
}

// submitTimeout is how long a user waits for an answer before submitting again with the
// same key.
const submitTimeout = 5 * time.Second

// submitJob submits a job, and again until its id is shown.
func (p *Pool) submitJob(i int) {
	u := &p.users[i]
	if u.refused != nil || !u.id.IsZero() && !u.resubmitted {
		return
	}
	if set := p.cfg.Jobs[i].InsideOf; set > 0 && p.users[set-1].id.IsZero() && p.users[set-1].refused == nil {
		p.planResubmission(i)
		return
	}
	defer p.planResubmission(i) // also when the daemon crashes while it handles this submission
	if s := p.queueNode(i); s != nil && u.askedLife != s.coreLife {
		u.askedLife = s.coreLife
		err := s.core.Submit(s.timeOf(), p.callerOf(i), "job "+strconv.Itoa(i), []queue.SubmitSpec{p.submitSpec(i)},
			func(ids []roost.JobID, _ bool) {
				p.showID(i, s, ids)
			})
		if err != nil {
			u.refused = fmt.Errorf("job %d: %w", i, err)
			p.unfinished--
			return
		}
		s.endTurn()
	}
}

// planResubmission has a job submitted again after the timeout, unless its id was shown
// or it was refused.
func (p *Pool) planResubmission(i int) {
	if u := &p.users[i]; u.refused == nil && (u.id.IsZero() || u.resubmitted) {
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + submitTimeout,
			Place: p.submitNode(i).id, Kind: evSubmit, Number: uint64(i)})
	}
}

// submitNode returns the node on which a job is submitted.
func (p *Pool) submitNode(i int) *scheddNode { return p.schedds[p.cfg.Jobs[i].Schedd] }

// showID shows a user the id of the job, which a schedd has said.
func (p *Pool) showID(i int, s *scheddNode, ids []roost.JobID) {
	j, u := &p.cfg.Jobs[i], &p.users[i]
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
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + j.ResubmitAfter, Place: p.submitNode(i).id,
			Kind: evFunc, Payload: func() {
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
	u, s := &p.users[a.Job], p.queueNode(a.Job)
	if u.refused != nil {
		return
	}
	if u.id.IsZero() || s == nil {
		p.loop.Schedule(eventloop.PlannedEvent{At: p.loop.Now() + time.Second, Place: p.submitNode(a.Job).id,
			Kind: evAction, Number: uint64(n)})
		return
	}
	id, life, letGo, answered := u.id, s.coreLife, u.releases, false
	if a.isRemoval() { // what runs until it is removed would run for ever
		p.CallAt(p.loop.Now()+submitTimeout, func() {
			if !answered {
				p.performAction(n)
			}
		})
	}
	if a.Verb == wire.ActRequest_RELEASE {
		// refused for now; the simulated administrator releases it
		if _, unsure := s.core.Queue().UnrecordedLease(id.Seq); unsure {
			return
		}
		u.releases++
		p.observe(audit.Event{Type: audit.Released, Job: id, Index: audit.AllTasks})
	}
	err := s.core.Act(s.timeOf(), p.actRequest(a), p.callerOf(a.Job), queue.TaskSelector{Job: id}, func() {
		answered = true
		switch {
		case s.coreLife != life || u.releases != letGo: // released since: that report supersedes this one
		case a.Verb == wire.ActRequest_HOLD:
			p.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks})
		case a.Verb == wire.ActRequest_REMOVE:
			p.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks, Detail: audit.Removal})
		}
	})
	if answered = answered || err != nil; err == nil {
		s.endTurn()
	}
}

func (a *UserAction) isRemoval() bool {
	return a.Verb == wire.ActRequest_REMOVE && a.Command == "" && a.Environment == "" && a.Resources.CPU == 0
}

// actRequest returns what a user's action asks for.
func (p *Pool) actRequest(a *UserAction) *wire.ActRequest {
	switch {
	case a.Command != "":
		return &wire.ActRequest{Verb: wire.ActRequest_UPDATE, Update: &wire.UpdateOrder{Command: a.Command}}
	case a.Environment != "" || a.Resources.CPU > 0:
		u := &p.users[a.Job]
		u.revised = append(u.revised, a.revise)
		spec := p.submitSpec(a.Job)
		for _, revise := range u.revised {
			revise(spec.Ad)
		}
		return &wire.ActRequest{Verb: wire.ActRequest_UPDATE,
			Update: &wire.UpdateOrder{Ad: spec.Ad.String(), Count: uint32(spec.Count)}}
	}
	return &wire.ActRequest{Verb: a.Verb}
}

// revise changes the job file of a service as its user does before an update.
func (a *UserAction) revise(ad *classad.Ad) {
	if a.Environment != "" {
		ad.SetStrings(roost.AttrEnvironment, []string{a.Environment})
	}
	if a.Resources.CPU > 0 {
		ad.SetReal(roost.AttrRequestCpus, a.Resources.CPU.Cores())
		ad.SetInt(roost.AttrRequestMemory, int64(a.Resources.Memory/roost.MiB))
	}
}
