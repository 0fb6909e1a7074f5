package schedd

import (
	"context"
	"sync"
)

// outbox is an unbounded-looking queue of messages that is in fact bounded by what it carries: a node gets at most a few messages for each
// claim it has given. Putting never blocks, so the goroutine that owns the state never waits for a slow peer.
type outbox[T any] struct {
	mu    sync.Mutex
	items []T
	ready chan struct{} // holds one token while items may be waiting
}

func newOutbox[T any]() *outbox[T] { return &outbox[T]{ready: make(chan struct{}, 1)} }

// put adds messages in order.
func (o *outbox[T]) put(items ...T) {
	o.mu.Lock()
	o.items = append(o.items, items...)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns all that waits.
func (o *outbox[T]) take() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	o.items = nil
	return items
}

// pump sends what is put until ctx ends or sending fails; whoever receives on the same stream gets the cause.
func (o *outbox[T]) pump(ctx context.Context, send func(T) error) {
	o.pumpAll(ctx, func(all []T) error {
		for _, m := range all {
			if err := send(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// pumpAll is pump where what waits is sent together.
func (o *outbox[T]) pumpAll(ctx context.Context, send func([]T) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.ready:
		}
		if all := o.take(); len(all) > 0 && send(all) != nil {
			return
		}
	}
}
