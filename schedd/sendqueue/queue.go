package sendqueue

import (
	"context"
	"sync"
)

// Queue is a queue of messages for one peer. Putting never blocks, so the goroutine
// that owns the state never waits for a slow peer. A peer gets at most a few messages for
// each claim; where bound was called, one that reads slower than they come has its
// session ended: nothing is left out in the middle of it, and the welcome of the next one
// says what the peer lacks.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	ready chan struct{} // holds one token while items may be waiting
	limit *queueLimit[T]
}

// queueLimit is how much may wait in an outbox.
type queueLimit[T any] struct {
	items, bytes int // at most
	size         func(T) int
	overflow     func() // is called once, and must not block
	waiting      int    // bytes
	over         bool
}

// New returns an empty queue without a limit.
func New[T any]() *Queue[T] { return &Queue[T]{ready: make(chan struct{}, 1)} }

// Limit limits what waits. A message alone is taken whatever its size.
func (o *Queue[T]) Limit(items, bytes int, size func(T) int, overflow func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = &queueLimit[T]{items: items, bytes: bytes, size: size, overflow: overflow}
}

// Enqueue adds messages in order.
func (o *Queue[T]) Enqueue(items ...T) {
	o.mu.Lock()
	overflow := o.add(items)
	o.mu.Unlock()
	if overflow != nil {
		overflow()
		return
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// add returns what is to be called where there are too many. From then on nothing is
// taken in, and what waits goes.
func (o *Queue[T]) add(items []T) (overflow func()) {
	l := o.limit
	if l == nil {
		o.items = append(o.items, items...)
		return nil
	}
	for _, m := range items {
		if l.over {
			return nil
		}
		size := l.size(m)
		if n := len(o.items); n >= l.items || n > 0 && l.waiting+size > l.bytes {
			l.over, o.items, l.waiting = true, nil, 0
			return l.overflow
		}
		o.items, l.waiting = append(o.items, m), l.waiting+size
	}
	return nil
}

// IsDrained reports whether the last messages were taken.
func (o *Queue[T]) IsDrained() bool { return len(o.ready) == 0 }

// TakeAll returns all that waits.
func (o *Queue[T]) TakeAll() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	o.items = nil
	if o.limit != nil {
		o.limit.waiting = 0
	}
	return items
}

// SendEach sends what is put until ctx ends or sending fails; whoever receives on the
// same stream gets the cause.
func (o *Queue[T]) SendEach(ctx context.Context, send func(T) error) {
	o.SendAll(ctx, func(all []T) error {
		for _, m := range all {
			if err := send(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// SendAll is pump where what waits is sent together.
func (o *Queue[T]) SendAll(ctx context.Context, send func([]T) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.ready:
		}
		if all := o.TakeAll(); len(all) > 0 && send(all) != nil {
			return
		}
	}
}
