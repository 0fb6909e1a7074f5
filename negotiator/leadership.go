package negotiator

import "sync"

// leadershipState is who leads, as one negotiator knows it.
type leadershipState struct {
	epoch    uint64 // the highest that it knows of
	isLeader bool   // it does itself, with that epoch
	leader   string // address; empty: nobody that it knows of
}

// leadership is the present position of this negotiator, for all who watch it.
type leadership struct {
	mu      sync.Mutex
	current leadershipState
	changed chan struct{} // closed and replaced by each change
}

func newLeadership() *leadership { return &leadership{changed: make(chan struct{})} }

// currentState returns the position and what is closed when it has changed.
func (s *leadership) currentState() (leadershipState, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// setState changes the position.
func (s *leadership) setState(change func(*leadershipState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current
	if change(&s.current); s.current != before {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}
