package negotiator

import "sync"

// position is who leads, as one negotiator knows it.
type position struct {
	epoch  uint64 // the highest that it knows of
	leads  bool   // it does itself, with that epoch
	leader string // address; empty: nobody that it knows of
}

// standing is the present position of this negotiator, for all who watch it.
type standing struct {
	mu      sync.Mutex
	now     position
	changed chan struct{} // closed and replaced by each change
}

func newStanding() *standing { return &standing{changed: make(chan struct{})} }

// look returns the position and what is closed when it has changed.
func (s *standing) look() (position, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.changed
}

// move changes the position.
func (s *standing) move(change func(*position)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now
	if change(&s.now); s.now != before {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}
