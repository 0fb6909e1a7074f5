package negotiator

import "sync"

// leadershipState says who leads, as one negotiator knows it.
type leadershipState struct {
	epoch    uint64 // highest known epoch
	isLeader bool   // this negotiator leads, in that epoch
	leader   string // address; empty: unknown
}

// leadership is the present leadership state, for all who watch it.
type leadership struct {
	mu      sync.Mutex
	current leadershipState
	changed chan struct{} // closed and replaced by each change
}

func newLeadership() *leadership { return &leadership{changed: make(chan struct{})} }

// currentState returns the state and a channel that is closed when it changes.
func (s *leadership) currentState() (leadershipState, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// setState changes the state.
func (s *leadership) setState(change func(*leadershipState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current
	if change(&s.current); s.current != before {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}
