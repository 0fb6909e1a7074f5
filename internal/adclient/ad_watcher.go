package adclient

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// AdChange is news of one ad.
type AdChange struct {
	Name     string
	Ad       string // its text; empty when Removed
	Removed  bool
	Sequence uint64 // orders the ads of one start of their daemon
	Started  int64  // unix nanoseconds; orders the starts
	Private  map[string]string
	Node     string // by whose certificate the collector knows the daemon; "": it has none
}

// AdWatcher follows the ads of one type at several collectors.
type AdWatcher struct {
	Collectors []string
	Identity   *rpc.Identity
	Type       string
	Log        *slog.Logger // nil: silent

	// Apply is called by one goroutine with what has changed, oldest first; synced says
	// that at least one collector has told all that it knows. Apply may wait: what
	// changes meanwhile is held back at the collectors, the last state of each ad only.
	Apply func(changes []AdChange, synced bool)
}

// confirmTimeout is how long an ad stays that a collector knew before the connection to
// it broke and does not know after it is back: a collector that has just restarted hears
// from everybody within moments, and until then its silence means nothing.
const confirmTimeout = 10 * time.Second

// queueSize bounds what waits between the collectors' streams and the merging; when it is
// full, the streams wait, and the collectors keep the last state of each ad for them.
const queueSize = 256

// adEvent is one event of one collector's stream.
type adEvent struct {
	source int
	delta  *wire.AdDelta // nil: the stream has begun anew
}

// Run watches until ctx ends, and returns when all it started is gone.
func (w *AdWatcher) Run(ctx context.Context) error {
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	events := make(chan adEvent, queueSize)
	var streams sync.WaitGroup
	for i, addr := range w.Collectors {
		streams.Go(func() { w.follow(ctx, i, addr, events) })
	}
	w.merge(ctx, events)
	streams.Wait()
	return nil
}

// merge owns the picture. It takes all that waits before it tells Apply, so that a burst
// is one call.
func (w *AdWatcher) merge(ctx context.Context, events <-chan adEvent) {
	m := newMerger(len(w.Collectors))
	for {
		var timer <-chan time.Time
		var t *time.Timer
		if at, ok := m.nextWake(); ok {
			t = time.NewTimer(time.Until(at))
			timer = t.C
		}
		select {
		case <-ctx.Done():
			return
		case n := <-events:
			m.apply(time.Now(), n)
			for range len(events) {
				m.apply(time.Now(), <-events)
			}
		case <-timer:
		}
		if t != nil {
			t.Stop()
		}
		m.expireUnconfirmed(time.Now())
		if changes, tell := m.takeChanges(); tell {
			w.Apply(changes, m.synced)
		}
	}
}

// follow reads the stream of one collector, and opens it again when it breaks.
func (w *AdWatcher) follow(ctx context.Context, source int, addr string, events chan<- adEvent) {
	conn, err := rpc.Dial(addr, w.Identity, peer.Collector)
	if err != nil {
		w.Log.Error("cannot watch ads", "collector", addr, "err", err)
		return
	}
	defer conn.Close()
	retry := minRetry
	for ctx.Err() == nil {
		began := time.Now()
		err := w.stream(ctx, conn, source, events)
		if ctx.Err() != nil {
			return
		}
		w.Log.Debug("watching interrupted", "collector", addr, "err", err)
		if time.Since(began) > maxRetry {
			retry = minRetry
		}
		if !sleep(ctx, retry) {
			return
		}
		retry = min(2*retry, maxRetry)
	}
}

func (w *AdWatcher) stream(ctx context.Context, conn *grpc.ClientConn, source int, events chan<- adEvent) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewCollectorClient(conn).Watch(ctx, &wire.WatchAds{Type: w.Type}, grpc.WaitForReady(true))
	if err != nil {
		return rpc.FromStatus(err)
	}
	n := adEvent{source: source}
	for {
		select {
		case events <- n:
		case <-ctx.Done():
			return ctx.Err()
		}
		delta, err := stream.Recv()
		if err != nil {
			return rpc.FromStatus(err)
		}
		n.delta = delta
	}
}
