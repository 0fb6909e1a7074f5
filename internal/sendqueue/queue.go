package sendqueue

import "sync"

// Queue is a first-in, first-out queue whose sender never waits. One goroutine takes from
// it; any number may put.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	ready chan struct{} // holds one token while items may be waiting
}

// New returns an empty queue.
func New[T any]() *Queue[T] { return &Queue[T]{ready: make(chan struct{}, 1)} }

// Put adds an item at the end, without waiting.
func (q *Queue[T]) Put(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Ready returns a channel that gives one token when items may be waiting.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Take returns all items that wait. The slice is valid until the next call.
func (q *Queue[T]) Take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	clear(q.spare)
	q.items, q.spare = q.spare[:0], items
	return items
}
