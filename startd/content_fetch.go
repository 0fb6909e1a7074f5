package startd

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/containerimage"
)

// Bounds of what a machine fetches before a task needs it. An image that no task has used
// by the end of its time makes room like any other.
const (
	maxEarlyFetches     = 16 // that are on their way or held for a task
	earlyFetchTimeout   = time.Hour
	earlyFetchRetention = 15 * time.Minute
)

// earlyFetches are the images and packages that a machine fetches before a task needs
// them, one after another.
type earlyFetches struct {
	log   *slog.Logger
	cache *containerimage.Cache

	turn chan struct{} // has one element while an image is on its way
	mu   sync.Mutex
	held map[store.Digest]*time.Timer // that ends the hold; nil: the image is on its way
}

func newEarlyFetches(log *slog.Logger, cache *containerimage.Cache) *earlyFetches {
	return &earlyFetches{log: log, cache: cache, turn: make(chan struct{}, 1), held: map[store.Digest]*time.Timer{}}
}

// fetchContent begins to fetch what a schedd says that a later attempt needs, if it has
// an attempt here.
func fetchContent(l *machineLoop, s *scheddSession, m *wire.FetchContent) {
	fetches := l.host.earlyFetches
	if c, ok := l.table.Find(m.GetAttempt().AttemptID(s.schedd)); !ok || c.Schedd != s.schedd || fetches == nil {
		return
	}
	for _, text := range m.GetDigests() {
		if digest, err := store.ParseDigest(text); err == nil {
			fetches.begin(digest)
		}
	}
}

// begin begins to fetch an image, unless it is on its way, or too many are.
func (f *earlyFetches) begin(digest store.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, held := f.held[digest]; held || len(f.held) >= maxEarlyFetches {
		return
	}
	f.held[digest] = nil
	go f.fetch(digest)
}

// fetch fetches an image, and holds it for the task that is to come.
func (f *earlyFetches) fetch(digest store.Digest) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	ctx, cancel := context.WithTimeout(context.Background(), earlyFetchTimeout)
	defer cancel()
	if _, err := f.cache.Acquire(ctx, digest); err != nil {
		f.log.Info("an image was not fetched before it is needed", "digest", digest, "error", err)
		f.forget(digest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[digest] = time.AfterFunc(earlyFetchRetention, func() {
		f.cache.Release(digest)
		f.forget(digest)
	})
}

func (f *earlyFetches) forget(digest store.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, digest)
}

// close ends all holds, so that the cache can be closed.
func (f *earlyFetches) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for digest, timer := range f.held {
		if timer != nil && timer.Stop() {
			f.cache.Release(digest)
		}
	}
}
