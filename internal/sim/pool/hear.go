package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// accept begins a session of a schedd, as startd's loop.open.
func (m *machineNode) accept(on *stream, hello any) {
	h := hello.(*wire.SessionHello)
	id := m.last + 1
	if h.GetNode() != "" && h.GetNode() != m.name {
		m.p.hang(on, 1)
		return
	}
	if err := m.core.Connected(m.boot(), id, h.GetSchedd(), h.GetStarted(), h.GetIncarnation()); err != nil {
		m.p.hang(on, 1)
		return
	}
	m.last = id
	m.sessions[id], on.with[1] = on, id
	m.p.send(on, 1, &wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: m.welcome(h.GetSchedd())}})
	m.act()
}

// welcome lists what is here of a schedd.
func (m *machineNode) welcome(schedd string) *wire.SessionWelcome {
	w := &wire.SessionWelcome{Node: m.name, BootId: fmt.Sprint(m.host), FileSystemDomain: domain}
	for _, c := range m.core.Of(schedd) {
		state := &wire.ClaimState{
			Claim: uint64(c.ID), Resources: wire.FromResources(c.Resources), Owner: c.Owner, Grant: c.Grant.ID, Epoch: c.Grant.Epoch, Running: c.Running, Waiting: c.Waits(),
		}
		if !c.Attempt.Task.Job.IsZero() {
			state.Attempt = reference(c.Attempt)
		}
		if m.lender != nil && c.Running {
			state.Suspended = m.lender.Why(c.ID)
		}
		if c.State == slot.Exited {
			state.Exited = m.exited(c)
		}
		w.Claims = append(w.Claims, state)
	}
	return w
}

func (m *machineNode) broken(on *stream) {
	if l, ok := on.with[0].(*adLink); ok && on.kind == ofMachines {
		if l.on == on {
			l.on, l.sent, l.waiting = nil, 0, false
			m.alarm(&l.again, m.p.k.Now()+l.retry.next(m.p.k.Now()-l.began))
		}
		return
	}
	id, ok := on.with[1].(uint64)
	if !ok || m.sessions[id] != on {
		return
	}
	delete(m.sessions, id)
	m.core.Disconnected(m.boot(), id, on.ends[0].name)
	m.act()
}

// receive takes in a message, as startd's loop.hear.
func (m *machineNode) receive(on *stream, x any) {
	switch x := x.(type) {
	case *adAnswer:
		l := on.with[0].(*adLink)
		if l.on != on {
			return
		}
		if l.waiting = false; x.resend {
			l.sent = 0
		}
		m.advertise(l)
		return
	case *wire.ToStartd:
		id, _ := on.with[1].(uint64)
		if m.sessions[id] != on {
			return
		}
		m.hear(id, on.ends[0].name, x)
	}
	m.act()
}

func (m *machineNode) hear(session uint64, schedd string, message *wire.ToStartd) {
	switch x := message.GetOf().(type) {
	case *wire.ToStartd_Claim:
		m.claim(session, schedd, x.Claim)
	case *wire.ToStartd_Activate:
		a := x.Activate
		id := slot.ClaimID(a.GetClaim())
		m.programs[id] = a
		p := a.GetProgram()
		terms := slot.Terms{Walltime: time.Duration(p.GetWalltimeNs()), Expected: time.Duration(p.GetExpectedNs()), Once: p.GetOnce()}
		if m.core.Activated(m.boot(), session, schedd, id, attemptID(schedd, a.GetAttempt()), terms) != nil {
			delete(m.programs, id)
		}
	case *wire.ToStartd_Vacate:
		v := x.Vacate
		m.core.VacateAsked(session, schedd, attemptID(schedd, v.GetAttempt()), slot.AskedCause(int32(v.GetCause())), v.GetFast(), v.GetReason())
	case *wire.ToStartd_Limit:
		a := attemptID(schedd, x.Limit.GetAttempt())
		m.core.Limited(a, max(time.Duration(x.Limit.GetWalltimeNs()), 0))
	case *wire.ToStartd_Freeze:
		a := attemptID(schedd, x.Freeze.GetAttempt())
		if c, ok := m.core.Find(a); ok && c.Schedd == schedd {
			m.hands[c.ID].starter.freeze(a, x.Freeze.GetFrozen())
		}
	case *wire.ToStartd_Acknowledge:
		for _, a := range x.Acknowledge.GetAttempts() {
			m.core.Acknowledged(session, schedd, attemptID(schedd, a))
		}
	case *wire.ToStartd_Release:
		m.core.Released(session, schedd, slot.ClaimID(x.Release.GetClaim()))
	case *wire.ToStartd_Renew:
		r := slot.Renewal{Heard: x.Renew.GetHeard(), Since: time.Duration(x.Renew.GetSinceNs()), Lease: time.Duration(x.Renew.GetLeaseS()) * time.Second}
		if word, ok := m.core.Renewed(m.boot(), session, schedd, r); ok {
			m.tell(schedd, &wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: word}}})
		}
	}
}

// claim has a wish for one decided.
func (m *machineNode) claim(session uint64, schedd string, r *wire.ClaimRequest) {
	grant := &wire.Grant{
		Id: r.GetGrant(), Node: m.name, Resources: r.GetResources(), Epoch: r.GetEpoch(), Capability: r.GetCapability(), Owner: r.GetOwner(), Group: r.GetGroup(),
		Band: r.GetBand(), Victims: r.GetVictims(), Why: r.GetWhy(), ClaimBy: r.GetClaimBy(),
	}
	wish := slot.ClaimRequest{
		Session: session, Schedd: schedd, Grant: slot.GrantID{Epoch: r.GetEpoch(), ID: r.GetGrant()}, Owner: r.GetOwner(), UID: r.GetUid(), GID: r.GetGid(),
		Resources: r.GetResources().Vector(), MayWait: r.GetMayWait(), By: time.Duration(r.GetClaimBy()), Lease: time.Duration(r.GetLeaseS()) * time.Second,
		Capable: wire.CheckCapability(m.key, grant, schedd), Env: &classad.Env{Now: m.now(), Steps: matchSteps}, About: slot.About{Group: r.GetGroup(), Band: roost.Batch},
		Evicted: slot.Evicted{Why: r.GetWhy(), Job: r.GetJob()},
	}
	for _, id := range r.GetVictims() {
		wish.Evicted.Claims = append(wish.Evicted.Claims, slot.ClaimID(id))
	}
	var err error
	if wish.Class, err = gpu.ParseClass(r.GetAppClass()); err != nil {
		wish.Account = err
	}
	if text := r.GetAd(); text != "" {
		if wish.Ad, err = classad.Parse(text); err != nil {
			wish.Account = err
		} else {
			wish.About.Limits, _ = wish.Ad.Str(roost.AttrLimits)
			wish.About.Alone, _ = wish.Ad.Bool(roost.AttrExclusive)
			wish.About.Queue, _ = wish.Ad.Str(roost.AttrQueue)
		}
	}
	if band := r.GetBand(); band != "" {
		if wish.About.Band, err = roost.ParseBand(band); err != nil {
			wish.Account = err
		}
	}
	if m.lender != nil && wish.Account == nil {
		wish.Account = m.lender.Accepts(wish.Ad)
	}
	_, _ = m.core.Decide(m.boot(), wish) // the effects answer
}

// attemptID is the id that a reference of that schedd stands for, and reference the way back.
func attemptID(schedd string, r *wire.AttemptRef) roost.AttemptID {
	job := roost.JobID{Seq: r.GetJob(), Host: schedd}
	return roost.AttemptID{Task: job.Task(int(r.GetIndex())), Attempt: roost.Attempt(r.GetAttempt())}
}

func reference(id roost.AttemptID) *wire.AttemptRef {
	return &wire.AttemptRef{Job: id.Task.Job.Seq, Index: uint32(id.Task.Index), Attempt: uint32(id.Attempt)}
}
