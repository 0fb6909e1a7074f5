package pool

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// Connect implements schedd.EffectRunner.
func (s *scheddNode) Connect(name, _ string) {
	to := s.pool.byName[name]
	if to == nil {
		return // an address without a node
	}
	x := &startdSession{to: to}
	s.peers[name] = x
	s.openSession(x)
}

// Disconnect implements schedd.EffectRunner.
func (s *scheddNode) Disconnect(name string) {
	x := s.peers[name]
	delete(s.peers, name)
	if x != nil && x.stream != nil {
		s.pool.network().closeStream(x.stream, 0)
	}
}

// openSession opens a session with a startd.
func (s *scheddNode) openSession(x *startdSession) {
	x.stream, x.session, x.began = nil, nil, s.pool.loop.Now()
	x.stream = s.pool.network().openStream(s.hostNode, x.to, sessionStream, s.core.GreetingMessage(x.to.name), x)
}

// reopenSession reopens the stream that a timer belongs to.
func (s *scheddNode) reopenSession(a *daemonTimer) {
	for i := range s.leaders {
		switch l := &s.leaders[i]; a {
		case &l.retryTimer:
			s.watchLeader(i)
			return
		case &l.deadline:
			s.reconnectSilent(i)
			return
		}
	}
	for _, x := range s.peers {
		if a == &x.retryTimer {
			s.openSession(x)
			return
		}
	}
}

// handleMessage handles a message.
func (s *scheddNode) handleMessage(on *daemonStream, m any) {
	switch m := m.(type) {
	case *wire.FromStartd:
		x := on.endState[0].(*startdSession)
		switch {
		case x.stream != on:
			return
		case x.session == nil:
			if x.session = s.core.SessionOpened(s.timeOf(), x.to.name, m.GetWelcome()); x.session == nil {
				s.pool.network().closeStream(on, 0)
				s.streamBroken(on)
				return
			}
		default:
			s.core.StartdReport(s.timeOf(), x.session, m)
		}
	case *wire.ToSchedd:
		if s.leaderStream != on {
			return
		}
		if s.leaderSession == nil {
			s.leaderSession = s.core.NegotiatorConnected(s.timeOf(), m.GetHello().GetEpoch(), m.GetHello().GetName(),
				on.ends[1].name)
		} else {
			s.core.NegotiatorReport(s.timeOf(), s.leaderSession, m)
		}
	case *wire.LeaderNews:
		s.handleLeaderReport(on.endState[0].(int), m)
		return
	}
	s.endTurn()
}

// streamBroken handles the end of a stream.
func (s *scheddNode) streamBroken(on *daemonStream) {
	switch on.kind {
	case sessionStream:
		x := on.endState[0].(*startdSession)
		if x.stream != on || s.peers[x.to.name] != x {
			return
		}
		if x.session != nil {
			s.core.SessionClosed(s.timeOf(), x.session)
		}
		lasted := s.pool.loop.Now() - x.began
		x.stream, x.session = nil, nil
		s.setTimer(&x.retryTimer, s.pool.loop.Now()+x.retry.nextDelay(lasted))
	case grantStream:
		if s.leaderStream != on {
			return
		}
		if s.leaderSession != nil {
			s.core.NegotiatorDisconnected(s.timeOf(), s.leaderSession)
		}
		s.leaderSession, s.leaderStream = nil, nil
		s.setTimer(&s.retryTimer, s.pool.loop.Now()+s.retry.nextDelay(s.pool.loop.Now()-s.sessionBegan))
	case leaderStream:
		l := &s.leaders[on.endState[0].(int)]
		if l.stream == on {
			l.stream, l.epoch, l.isLeader = nil, 0, false
			s.setTimer(&l.retryTimer, s.pool.loop.Now()+minRetry)
			s.followLeader()
		}
		return
	}
	s.endTurn()
}

// watchLeader asks a manager to report the leader.
func (s *scheddNode) watchLeader(i int) {
	l := &s.leaders[i]
	if l.stream == nil {
		l.stream = s.pool.network().openStream(s.hostNode, s.pool.managers[i].hostNode, leaderStream,
			&wire.WatchLeader{}, i)
	}
}

// handleLeaderReport handles a manager's report. It does what
// schedd/negotiation/leader_tracker.go does.
func (s *scheddNode) handleLeaderReport(i int, m *wire.LeaderNews) {
	l := &s.leaders[i]
	l.epoch, l.isLeader, l.heard = m.GetEpoch(), m.GetLeads(), s.pool.loop.Now()
	if within := time.Duration(m.GetWithinMs()) * time.Millisecond; within > 0 {
		l.deadline.set = false // the new deadline replaces the old one
		s.setTimer(&l.deadline, s.pool.loop.Now()+within)
	}
	s.followLeader()
}

// reconnectSilent reconnects to a manager whose promised report did not come.
func (s *scheddNode) reconnectSilent(i int) {
	l := &s.leaders[i]
	if l.stream != nil {
		s.pool.network().closeStream(l.stream, 0)
		l.stream, l.epoch, l.isLeader = nil, 0, false
	}
	s.watchLeader(i)
	s.followLeader()
}

// followLeader opens a session with the leader of the highest epoch, and ends one with a
// deposed leader.
func (s *scheddNode) followLeader() {
	var highest uint64
	leader := -1
	for i := range s.leaders {
		l := &s.leaders[i]
		if l.epoch > highest {
			highest, leader = l.epoch, -1
		}
		if l.isLeader && l.epoch == highest && leader < 0 {
			leader = i
		}
	}
	if s.leaderStream != nil {
		if s.endedEpoch < highest && s.leaderStream.endState[0].(uint64) < highest {
			on := s.leaderStream
			s.pool.network().closeStream(on, 0)
			s.streamBroken(on)
		}
		return
	}
	if leader < 0 || s.retryTimer.set && s.retryTimer.at > s.pool.loop.Now() && highest == s.endedEpoch {
		return
	}
	s.endedEpoch, s.sessionBegan = highest, s.pool.loop.Now()
	s.leaderStream = s.pool.network().openStream(s.hostNode, s.pool.managers[leader].hostNode, grantStream,
		s.core.HelloMessage(), highest)
}
