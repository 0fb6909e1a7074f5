package accountant

import (
	"sync"
	"sync/atomic"
)

// sourceState is how the following of one schedd goes.
type sourceState struct {
	ingested atomic.Int64 // entries since the start
	refused  atomic.Int64 // entries that made no sense
	gaps     atomic.Int64
	at       atomic.Int64 // when something was last stored, unix milliseconds

	mu  sync.Mutex
	err string // why the feed cannot be read now; empty: it can
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
