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

// AdChange is a change of one ad.
type AdChange struct {
	Name     string
	Ad       string // text of the ad; empty when Removed
	Removed  bool
	Sequence uint64 // orders the ads of one process of their daemon
	Started  int64  // start of the daemon in unix nanoseconds; orders its processes
	Private  map[string]string
	Node     string // node of the daemon's certificate; "": it has none
}

// AdWatcher watches the ads of one type at several collectors.
type AdWatcher struct {
	Collectors []string
	Identity   *rpc.Identity
	Type       string
	Log        *slog.Logger // nil: no log

	// Apply is called by one goroutine with the changes, oldest first. synced means that
	// at least one collector has sent all its ads. Apply may block: the collectors then
	// hold back changes, and only the last state of each ad.
	Apply func(changes []AdChange, synced bool)
}

// confirmTimeout is how long an ad stays that a collector had before its connection broke
// and does not have afterwards. A collector that has just restarted gets all ads within
// moments; until then a missing ad means nothing.
const confirmTimeout = 10 * time.Second

// queueSize bounds the queue between the collectors' streams and the merger. When it is
// full, the streams wait, and the collectors store the last state of each ad for them.
const queueSize = 256

// adEvent is one event of one collector's stream.
type adEvent struct {
	source int
	delta  *wire.AdDelta // nil: the stream has begun again
}

// Run watches until ctx ends, and returns when everything that it started has ended.
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

// merge owns the merger. It applies all waiting events before it calls Apply, so that a
// burst is one call.
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
