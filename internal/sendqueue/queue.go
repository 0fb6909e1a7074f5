package sendqueue

import (
	"context"
	"sync"
)

// Queue is a first-in, first-out queue. One goroutine takes from it; any number may put.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	ready chan struct{} // holds one token while items may be waiting
	limit *queueLimit[T]
}

// queueLimit bounds what may wait in a queue.
type queueLimit[T any] struct {
	items, bytes int // the bounds
	size         func(T) int
	overflow     func() // is called once, when a bound is reached; it must not block
	waiting      int    // bytes that wait
	over         bool   // a bound was reached
}

// New returns an empty queue without a limit.
func New[T any]() *Queue[T] { return &Queue[T]{ready: make(chan struct{}, 1)} }

// Limit sets the bounds of a queue and what is called when one is reached. A single item
// may have any size.
func (o *Queue[T]) Limit(items, bytes int, size func(T) int, overflow func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = &queueLimit[T]{items: items, bytes: bytes, size: size, overflow: overflow}
}

// Put adds items at the end, without waiting.
func (o *Queue[T]) Put(items ...T) {
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

// add returns the function to call when a bound is reached. From then on the queue drops
// what waits and takes no more items.
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

// Ready returns a channel that gives one token when items may be waiting.
func (o *Queue[T]) Ready() <-chan struct{} { return o.ready }

// IsDrained reports whether the last items were taken.
func (o *Queue[T]) IsDrained() bool { return len(o.ready) == 0 }

// Take returns all items that wait.
func (o *Queue[T]) Take() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	o.items = nil
	if o.limit != nil {
		o.limit.waiting = 0
	}
	return items
}

// SendEach sends items one by one until ctx ends or send fails. The receiver of the same
// stream gets the cause.
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

// SendAll is SendEach for a send that takes all waiting items at once.
func (o *Queue[T]) SendAll(ctx context.Context, send func([]T) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.ready:
		}
		if all := o.Take(); len(all) > 0 && send(all) != nil {
			return
		}
	}
}
