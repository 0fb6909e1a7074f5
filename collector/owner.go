package collector

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
)

// Bounds of the owner's channel and of what a watcher is told at once.
const (
	inboxSize = 1024
	takeMost  = 512
)

// owner is the goroutine that owns the store, and the channel to it. Events are functions of the store: each handler of a call sends one and
// waits until it was run.
type owner struct {
	store   *adstore.Store
	inbox   chan func()
	done    chan struct{} // closed when the owner has ended
	waiting map[*adstore.Feed]chan<- taken
}

// taken is the answer to a watcher.
type taken struct {
	deltas []adstore.Delta
	err    error
}

func newOwner(limits adstore.Limits) *owner {
	return &owner{
		store: adstore.New(limits), inbox: make(chan func(), inboxSize),
		done: make(chan struct{}), waiting: map[*adstore.Feed]chan<- taken{},
	}
}

// run runs events until ctx ends. It takes all that waits before it tells the watchers, so that a burst of updates is one message to each.
func (o *owner) run(ctx context.Context) {
	defer close(o.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := o.store.NextWake(); ok {
			timer.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case event := <-o.inbox:
			event()
			for range len(o.inbox) {
				(<-o.inbox)()
			}
		case <-timer.C:
		}
		o.store.Expire(time.Now())
		o.serveWaiting()
	}
}

func (o *owner) serveWaiting() {
	for f, reply := range o.waiting {
		if f.Pending() {
			deltas, err := f.Take(takeMost)
			reply <- taken{deltas, err} // has room: a watcher asks one thing at a time
			delete(o.waiting, f)
		}
	}
}

// do runs event in the owner's goroutine and waits for it. Once the owner has the event, ctx is not listened to any more: what the event sets up
// must be known to the caller, or nobody would ever take it down.
func (o *owner) do(ctx context.Context, event func()) error {
	ran := make(chan struct{})
	select {
	case o.inbox <- func() { event(); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-o.done:
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-o.done:
		return errStopping
	}
}

// next waits until the feed has something to tell. The reply channel has room for one.
func (o *owner) next(ctx context.Context, f *adstore.Feed, reply chan taken) (taken, error) {
	select {
	case o.inbox <- func() { o.waiting[f] = reply }:
	case <-ctx.Done():
		return taken{}, ctx.Err()
	case <-o.done:
		return taken{}, errStopping
	}
	select {
	case t := <-reply:
		return t, t.err
	case <-ctx.Done():
		return taken{}, ctx.Err()
	case <-o.done:
		return taken{}, errStopping
	}
}

// forget ends a feed.
func (o *owner) forget(f *adstore.Feed) {
	select {
	case o.inbox <- func() { o.store.Unfollow(f); delete(o.waiting, f) }:
	case <-o.done:
	}
}

// errStopping is what calls get that are under way when the collector ends.
var errStopping error = stopping{}

type stopping struct{}

func (stopping) Error() string { return "collector: stopping" }
func (stopping) Unwrap() error { return roost.Unavailable }
