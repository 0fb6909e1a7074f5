package collector

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
)

// Bounds of the owner's channel and of what a watcher is told at once.
const (
	inboxSize      = 1024
	maxTakenDeltas = 512
)

// storeLoop is the goroutine that owns the store, and the channel to it. Events are
// functions of the store: each handler of a call sends one and waits until it was run.
type storeLoop struct {
	store   *adstore.Store
	inbox   chan func()
	done    chan struct{} // closed when the owner has ended
	waiting map[*adstore.TypeFeed]chan<- feedReply
}

// feedReply is the answer to a watcher.
type feedReply struct {
	deltas []adstore.AdChange
	err    error
}

func newStoreLoop(limits adstore.SizeLimits) *storeLoop {
	return &storeLoop{
		store: adstore.New(limits), inbox: make(chan func(), inboxSize),
		done: make(chan struct{}), waiting: map[*adstore.TypeFeed]chan<- feedReply{},
	}
}

// run runs events until ctx ends. It takes all that waits before it tells the watchers,
// so that a burst of updates is one message to each.
func (o *storeLoop) run(ctx context.Context) {
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
		o.answerWaiting()
	}
}

func (o *storeLoop) answerWaiting() {
	for f, reply := range o.waiting {
		if f.HasPending() {
			deltas, err := f.Take(maxTakenDeltas)
			reply <- feedReply{deltas, err} // has room: a watcher asks one thing at a time
			delete(o.waiting, f)
		}
	}
}

// runInLoop runs event in the owner's goroutine and waits for it. Once the owner has the
// event, ctx is not listened to any more: what the event sets up must be known to the
// caller, or nobody would ever take it down.
func (o *storeLoop) runInLoop(ctx context.Context, event func()) error {
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

// waitForDeltas waits until the feed has something to tell. The reply channel has room
// for one.
func (o *storeLoop) waitForDeltas(ctx context.Context, f *adstore.TypeFeed, reply chan feedReply) (feedReply, error) {
	select {
	case o.inbox <- func() { o.waiting[f] = reply }:
	case <-ctx.Done():
		return feedReply{}, ctx.Err()
	case <-o.done:
		return feedReply{}, errStopping
	}
	select {
	case t := <-reply:
		return t, t.err
	case <-ctx.Done():
		return feedReply{}, ctx.Err()
	case <-o.done:
		return feedReply{}, errStopping
	}
}

// endFeed ends a feed.
func (o *storeLoop) endFeed(f *adstore.TypeFeed) {
	select {
	case o.inbox <- func() { o.store.EndFeed(f); delete(o.waiting, f) }:
	case <-o.done:
	}
}

// errStopping is what calls get that are under way when the collector ends.
var errStopping error = stopRequest{}

type stopRequest struct{}

func (stopRequest) Error() string { return "collector: stopping" }
func (stopRequest) Unwrap() error { return roost.Unavailable }
