package adstore

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// TypeFeed delivers the ads of one type to a watcher. It delivers first all ads, then
// once the mark that these were all, then changes.
//
// The naive way stores a list of changes for each watcher, which grows without bound if
// the watcher is slow or hangs. A feed stores only the names of ads that have changed
// since the last Take, each once, and Take reads their present state: len(queue) <= ads
// stored + names removed meanwhile. If even that exceeds twice the limit of ads of a
// type, Take returns an error, and the watcher must start a new feed.
type TypeFeed struct {
	adType      *adType
	maxQueued   int
	queue       []string
	queued      map[string]bool
	initialLeft int  // how many entries of the queue belong to the initial ads
	synced      bool // Take has returned the mark after the initial ads
}

// AdChange is one change of an ad.
type AdChange struct {
	Entry  *StoredAd // nil: the ad was removed
	Name   string
	Synced bool // no change but the mark after the initial ads
}

// StartFeed starts a feed of a type.
func (s *Store) StartFeed(typ string) (*TypeFeed, error) {
	k := s.adTypeNamed(typ)
	if k == nil {
		return nil, fmt.Errorf("ads of type %q: %w: there are %d types already", typ, roost.Exhausted, len(s.types))
	}
	f := &TypeFeed{adType: k, maxQueued: 2*s.limits.AdsPerType + 1, queued: make(map[string]bool, len(k.sortedNames))}
	for _, sl := range k.sortedNames {
		f.queueName(sl.Name)
	}
	f.initialLeft = len(f.queue)
	k.feeds = append(k.feeds, f)
	return f, nil
}

// EndFeed ends a feed.
func (s *Store) EndFeed(f *TypeFeed) {
	k := f.adType
	k.feeds = slices.DeleteFunc(k.feeds, func(other *TypeFeed) bool { return other == f })
}

func (k *adType) notifyFeeds(name string) {
	for _, f := range k.feeds {
		f.queueName(name)
	}
}

func (f *TypeFeed) queueName(name string) {
	if !f.queued[name] && len(f.queue) <= f.maxQueued {
		f.queued[name] = true
		f.queue = append(f.queue, name)
	}
}

// HasPending reports whether Take has anything to return.
func (f *TypeFeed) HasPending() bool { return len(f.queue) > 0 || !f.synced }

// Take returns at most most changes, oldest first.
func (f *TypeFeed) Take(most int) ([]AdChange, error) {
	if len(f.queue) > f.maxQueued {
		return nil, fmt.Errorf("watch of %s ads: %w: more than %d changes behind", f.adType.name, roost.Exhausted,
			f.maxQueued)
	}
	n := min(most, len(f.queue))
	deltas := make([]AdChange, 0, n+1)
	for i, name := range f.queue[:n] {
		f.markSynced(i, &deltas)
		d := AdChange{Name: name}
		if sl := f.adType.ads[name]; sl != nil {
			d.Entry = sl.StoredAd
		}
		deltas = append(deltas, d)
		delete(f.queued, name)
	}
	f.markSynced(n, &deltas)
	f.initialLeft -= n
	f.queue = slices.Delete(f.queue, 0, n)
	if len(f.queue) == 0 {
		f.queue = nil
	}
	return deltas, nil
}

// markSynced appends the mark after the initial ads, if taken names of the queue complete
// them.
func (f *TypeFeed) markSynced(taken int, deltas *[]AdChange) {
	if !f.synced && taken >= f.initialLeft {
		f.synced = true
		*deltas = append(*deltas, AdChange{Synced: true})
	}
}
