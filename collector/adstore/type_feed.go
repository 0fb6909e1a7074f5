package adstore

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// TypeFeed follows the ads of one type: first all that there are, then, once, that this
// was all, then changes.
//
// The naive way keeps a list of changes for each follower, and a follower that is slow or
// stuck makes it grow for ever. A feed keeps only the names of ads that have changed
// since its follower last took something, each once, and reads their present state when
// it does: len(queue) <= ads stored + names removed meanwhile. Should even that grow
// beyond twice the ads that a type may have, the follower has lost touch: Take returns an
// error, and it has to follow anew.
type TypeFeed struct {
	adType      *adType
	maxQueued   int
	queue       []string
	queued      map[string]bool
	initialLeft int  // how many of the queue belong to the first picture
	synced      bool // Take has said that the first picture is complete
}

// AdChange is one change.
type AdChange struct {
	Entry  *StoredAd // nil when the ad is gone
	Name   string
	Synced bool // no change: the first picture is complete
}

// StartFeed starts a feed of that type.
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

// HasPending reports whether Take has something to give.
func (f *TypeFeed) HasPending() bool { return len(f.queue) > 0 || !f.synced }

// Take returns at most so many changes, oldest first.
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

// markSynced says that the first picture is complete, when taken names of the queue make
// it so.
func (f *TypeFeed) markSynced(taken int, deltas *[]AdChange) {
	if !f.synced && taken >= f.initialLeft {
		f.synced = true
		*deltas = append(*deltas, AdChange{Synced: true})
	}
}
