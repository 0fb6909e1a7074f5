package accountant

import (
	"sync"
	"sync/atomic"
	"time"
)

// sourceState is how the following of one schedd goes.
type sourceState struct {
	ingested atomic.Int64 // entries since the start
	refused  atomic.Int64 // entries that made no sense
	gaps     atomic.Int64
	at       atomic.Int64 // when something was last stored, unix milliseconds
	complete atomic.Int64 // up to which the feed is stored, unix milliseconds
	gapOpen  atomic.Bool  // the feed has a gap that is not filled

	mu  sync.Mutex
	err string // why the feed cannot be read now; empty: it can
}

// noteStored notes that the feed is stored up to a time, in unix milliseconds. Clocks of
// schedds may be ahead.
func (s *sourceState) noteStored(until int64) {
	until = min(until, time.Now().UnixMilli())
	if until > s.complete.Load() { // there is one follower
		s.complete.Store(until)
	}
}

// setError notes why the feed cannot be read now, and reports whether that is news.
func (s *sourceState) setError(err error) (isNews bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isNews = text != "" && text != s.err
	s.err = text
	return isNews
}

func (s *sourceState) lastError() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
