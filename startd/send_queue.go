package startd

import "sync"

// sendQueue is a queue whose sender never waits. It needs no bound of its own: a hand
// gets a few orders in each state of its claim, and a session a few messages for each
// claim.
type sendQueue[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	ready chan struct{} // holds one token while items may be waiting
}

func newSendQueue[T any]() *sendQueue[T] { return &sendQueue[T]{ready: make(chan struct{}, 1)} }

func (m *sendQueue[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns all that waits. The slice is valid until the next take.
func (m *sendQueue[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	clear(m.spare)
	m.items, m.spare = m.spare[:0], items
	return items
}
