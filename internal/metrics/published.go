package metrics

import (
	"context"
	"sync/atomic"
	"time"
)

// Times of snapshots.
const (
	readInterest    = 5 * time.Minute // for how long a read lets the owner make snapshots
	minSnapshotAge  = time.Second     // the owner makes no newer one
	maxSnapshotAge  = 10 * time.Second
	snapshotTimeout = time.Second // how long a read waits for the owner when the last one is older than that
	// the owner makes snapshots so seldom that they take at most one in so many parts of
	// its time
	snapshotShare = 100
)

// Published holds the last snapshot of a daemon's state. The goroutine that owns the
// state makes it, and reads of the page take it. It is made only while somebody reads. A
// nil Published is never read.
type Published[T any] struct {
	last        atomic.Pointer[stampedSnapshot[T]]
	wantedUntil atomic.Int64  // unix nanoseconds
	fresh       chan struct{} // of the owner for a read: there is a new one
	wanted      chan struct{} // of a read for Run: the last one is old
	wake        func()
}

type stampedSnapshot[T any] struct {
	value T
	at    time.Time
	next  time.Time // the owner makes another one then at the earliest
}

// newPublished returns one of a registry, nil for a nil registry. A read of the page
// sets gauges from the last snapshot by show.
func newPublished[T any](r *Registry, show func(to *Reading, s *T)) *Published[T] {
	if r == nil {
		return nil
	}
	p := &Published[T]{fresh: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
	p.wake = func() { signalOne(p.wanted) }
	r.OnRead(func(to *Reading) {
		if s := p.read(); s != nil {
			show(to, &s.value)
		}
	})
	return p
}

// newDaemonState is newPublished for the state of the daemon itself, with its age.
func newDaemonState[T any](r *Registry, show func(to *Reading, s *T)) (p *Published[T]) {
	age := r.Gauge("snapshot_age_seconds",
		"Age of the gauges of this page; without an answer of the daemon for 10 seconds they are left out.")
	p = newPublished(r, func(to *Reading, s *T) {
		to.Set(age, time.Since(p.last.Load().at).Seconds())
		show(to, s)
	})
	return p
}

// OnStale has wake called when a read finds no snapshot that is new enough. wake should
// have the owner call Refresh, and must not wait for it. It is set before the first read.
func (p *Published[T]) OnStale(wake func()) {
	if p != nil {
		p.wake = wake
	}
}

// Refresh makes a snapshot if somebody reads the page and the last one is old enough.
// The owner calls it as often as it likes.
func (p *Published[T]) Refresh(now time.Time, snapshot func() T) {
	if p == nil || now.UnixNano() >= p.wantedUntil.Load() {
		return
	}
	if last := p.last.Load(); last != nil && now.Before(last.next) {
		return
	}
	began := time.Now()
	s := &stampedSnapshot[T]{value: snapshot(), at: began}
	took := time.Since(began)
	s.next = now.Add(min(max(minSnapshotAge, snapshotShare*took), maxSnapshotAge/2))
	p.last.Store(s)
	signalOne(p.fresh)
}

// signalOne sends a signal unless there is one already.
func signalOne(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Run calls Refresh in each period, and when a read finds no snapshot that is new enough,
// until ctx ends. It is for owners that have no loop of their own.
func (p *Published[T]) Run(ctx context.Context, period time.Duration, snapshot func() T) {
	if p == nil {
		return
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		case <-tick.C:
		}
		p.Refresh(time.Now(), snapshot)
	}
}

// read returns the last snapshot, nil when the owner did not answer. Reads do not
// overlap.
func (p *Published[T]) read() *stampedSnapshot[T] {
	now := time.Now()
	p.wantedUntil.Store(now.Add(readInterest).UnixNano())
	if s := p.latest(); s != nil {
		return s
	}
	select {
	case <-p.fresh: // of an earlier one
	default:
	}
	p.wake()
	timeout := time.NewTimer(snapshotTimeout)
	defer timeout.Stop()
	select {
	case <-p.fresh:
	case <-timeout.C:
	}
	return p.latest()
}

// latest returns the last snapshot unless it is too old.
func (p *Published[T]) latest() *stampedSnapshot[T] {
	if s := p.last.Load(); s != nil && time.Since(s.at) < maxSnapshotAge {
		return s
	}
	return nil
}
