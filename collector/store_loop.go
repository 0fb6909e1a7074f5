package collector

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/relay"
)

// Bounds of the owner's channel and of the changes in one answer to a watcher.
const (
	inboxSize      = 1024
	maxTakenDeltas = 512
	// log lines about refused endpoints: some at once, then one in that time
	refusalBurst    = 10
	refusalInterval = 10 * time.Second
)

// storeLoop is the goroutine that owns the store, and the channel to it. Events are
// functions: each handler of a call sends one and waits until it has run.
type storeLoop struct {
	store   *adstore.Store
	inbox   chan func()
	done    chan struct{} // closed when the owner has ended
	waiting map[*adstore.TypeFeed]chan<- feedReply
	metrics *metrics.Collector

	log      *slog.Logger
	relay    *relay.Server // for nodes that nobody can dial
	names    *nameTable
	machines *adstore.TypeFeed // of machine ads, for the names
	rights   *rightChecker     // nil: nodes have no certificates
	refusals *rate.Limiter     // of log lines about refused endpoints
}

// feedReply is the answer to a watcher.
type feedReply struct {
	deltas []adstore.AdChange
	err    error
}

func newStoreLoop(limits adstore.SizeLimits, table names.Config) *storeLoop {
	o := &storeLoop{
		store: adstore.New(limits), inbox: make(chan func(), inboxSize),
		done: make(chan struct{}), waiting: map[*adstore.TypeFeed]chan<- feedReply{},
		log: slog.New(slog.DiscardHandler), metrics: metrics.NewCollector(nil), names: newNameTable(table),
		refusals: rate.NewLimiter(rate.Every(refusalInterval), refusalBurst),
		relay:    relay.NewServer(slog.New(slog.DiscardHandler)),
	}
	o.machines, _ = o.store.StartFeed("Machine") // an empty store has room for a type
	return o
}

// run runs events until ctx ends. It runs all waiting events before it answers the
// watchers, so that a burst of updates is one message to each.
func (o *storeLoop) run(ctx context.Context) {
	defer close(o.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := o.nextWake(); ok {
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
		o.metrics.Expired.Add(float64(o.store.Expire(time.Now())))
		o.updateNames(time.Now())
		o.answerWaiting()
	}
}

func (o *storeLoop) answerWaiting() {
	for f, reply := range o.waiting {
		if f.HasPending() {
			deltas, err := f.Take(maxTakenDeltas)
			reply <- feedReply{deltas, err} // has room: a watcher has one request at a time
			delete(o.waiting, f)
		}
	}
}

// runInLoop runs event in the owner's goroutine and waits for it. When the owner has
// received the event, ctx no longer matters: the caller must learn what the event has
// created, or it would never be removed.
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

// waitForDeltas waits until the feed has changes. The reply channel has room for one
// reply.
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

// errStopping is the error of calls in progress when the collector stops.
var errStopping error = stopRequest{}

type stopRequest struct{}

func (stopRequest) Error() string { return "collector: stopping" }
func (stopRequest) Unwrap() error { return roost.Unavailable }
