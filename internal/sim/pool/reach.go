package pool

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// Connect implements schedd.Beyond.
func (s *scheddNode) Connect(name, _ string) {
	to := s.p.byName[name]
	if to == nil {
		return // an address that leads nowhere
	}
	x := &peer{to: to}
	s.peers[name] = x
	s.session(x)
}

// Disconnect implements schedd.Beyond.
func (s *scheddNode) Disconnect(name string) {
	x := s.peers[name]
	delete(s.peers, name)
	if x != nil && x.on != nil {
		s.p.hang(x.on, 0)
	}
}

// session opens one with a startd.
func (s *scheddNode) session(x *peer) {
	x.on, x.session, x.began = nil, nil, s.p.k.Now()
	x.on = s.p.open(s.node, x.to, ofSession, s.core.Greeting(x.to.name), x)
}

// reconnect opens anew what an alarm is about.
func (s *scheddNode) reconnect(a *alarm) {
	for i := range s.leaders {
		switch l := &s.leaders[i]; a {
		case &l.again:
			s.watch(i)
			return
		case &l.patient:
			s.mute(i)
			return
		}
	}
	for _, x := range s.peers {
		if a == &x.again {
			s.session(x)
			return
		}
	}
}

// receive takes in a message.
func (s *scheddNode) receive(on *stream, m any) {
	switch m := m.(type) {
	case *wire.FromStartd:
		x := on.with[0].(*peer)
		switch {
		case x.on != on:
			return
		case x.session == nil:
			if x.session = s.core.Opened(s.moment(), x.to.name, m.GetWelcome()); x.session == nil {
				s.p.hang(on, 0)
				s.broken(on)
				return
			}
		default:
			s.core.Heard(s.moment(), x.session, m)
		}
	case *wire.ToSchedd:
		if s.with != on {
			return
		}
		if s.talk == nil {
			s.talk = s.core.Joined(s.moment(), m.GetHello().GetEpoch(), m.GetHello().GetName(), on.ends[1].name)
		} else {
			s.core.Advised(s.moment(), s.talk, m)
		}
	case *wire.LeaderNews:
		s.told(on.with[0].(int), m)
		return
	}
	s.turn()
}

// broken takes in that a stream is over.
func (s *scheddNode) broken(on *stream) {
	switch on.kind {
	case ofSession:
		x := on.with[0].(*peer)
		if x.on != on || s.peers[x.to.name] != x {
			return
		}
		if x.session != nil {
			s.core.Broken(s.moment(), x.session)
		}
		lasted := s.p.k.Now() - x.began
		x.on, x.session = nil, nil
		s.alarm(&x.again, s.p.k.Now()+x.retry.next(lasted))
	case ofGrants:
		if s.with != on {
			return
		}
		if s.talk != nil {
			s.core.Parted(s.moment(), s.talk)
		}
		s.talk, s.with = nil, nil
		s.alarm(&s.again, s.p.k.Now()+s.retry.next(s.p.k.Now()-s.began))
	case ofLeaders:
		l := &s.leaders[on.with[0].(int)]
		if l.on == on {
			l.on, l.epoch, l.leads = nil, 0, false
			s.alarm(&l.again, s.p.k.Now()+firstRetry)
			s.follow()
		}
		return
	}
	s.turn()
}

// watch asks a manager who leads.
func (s *scheddNode) watch(i int) {
	l := &s.leaders[i]
	if l.on == nil {
		l.on = s.p.open(s.node, s.p.managers[i].node, ofLeaders, &wire.WatchLeader{}, i)
	}
}

// told takes in what a manager says, as schedd/leader.go does.
func (s *scheddNode) told(i int, m *wire.LeaderNews) {
	l := &s.leaders[i]
	l.epoch, l.leads, l.heard = m.GetEpoch(), m.GetLeads(), s.p.k.Now()
	if within := time.Duration(m.GetWithinMs()) * time.Millisecond; within > 0 {
		l.patient.set = false // the later one counts
		s.alarm(&l.patient, s.p.k.Now()+within)
	}
	s.follow()
}

// mute connects anew to a manager that has broken its promise to speak.
func (s *scheddNode) mute(i int) {
	l := &s.leaders[i]
	if l.on != nil {
		s.p.hang(l.on, 0)
		l.on, l.epoch, l.leads = nil, 0, false
	}
	s.watch(i)
	s.follow()
}

// follow begins a conversation with the leader of the highest epoch where there is none, and ends one with a manager that leads no more.
func (s *scheddNode) follow() {
	var highest uint64
	leader := -1
	for i := range s.leaders {
		l := &s.leaders[i]
		if l.epoch > highest {
			highest, leader = l.epoch, -1
		}
		if l.leads && l.epoch == highest && leader < 0 {
			leader = i
		}
	}
	if s.with != nil {
		if s.unwanted < highest && s.with.with[0].(uint64) < highest {
			on := s.with
			s.p.hang(on, 0)
			s.broken(on)
		}
		return
	}
	if leader < 0 || s.again.set && s.again.at > s.p.k.Now() && highest == s.unwanted {
		return
	}
	s.unwanted, s.began = highest, s.p.k.Now()
	s.with = s.p.open(s.node, s.p.managers[leader].node, ofGrants, s.core.Hello(), highest)
}
