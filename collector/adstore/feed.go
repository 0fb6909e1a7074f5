package adstore

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// Feed follows the ads of one type: first all that there are, then, once, that this was all, then changes.
//
// The naive way keeps a list of changes for each follower, and a follower that is slow or stuck makes it grow for ever. A feed keeps only the
// names of ads that have changed since its follower last took something, each once, and reads their present state when it does:
// len(queue) <= ads stored + names removed meanwhile. Should even that grow beyond twice the ads that a type may have, the follower has lost
// touch: Take returns an error, and it has to follow anew.
type Feed struct {
	kind   *kind
	bound  int
	queue  []string
	queued map[string]bool
	first  int  // how many of the queue belong to the first picture
	synced bool // Take has said that the first picture is complete
}

// Delta is one change.
type Delta struct {
	Entry  *Entry // nil when the ad is gone
	Name   string
	Synced bool // no change: the first picture is complete
}

// Follow starts a feed of that type.
func (s *Store) Follow(typ string) (*Feed, error) {
	k := s.kind(typ)
	if k == nil {
		return nil, fmt.Errorf("ads of type %q: %w: there are %d types already", typ, roost.Exhausted, len(s.types))
	}
	f := &Feed{kind: k, bound: 2*s.limits.AdsPerType + 1, queued: make(map[string]bool, len(k.order))}
	for _, sl := range k.order {
		f.mark(sl.Name)
	}
	f.first = len(f.queue)
	k.feeds = append(k.feeds, f)
	return f, nil
}

// Unfollow ends a feed.
func (s *Store) Unfollow(f *Feed) {
	k := f.kind
	k.feeds = slices.DeleteFunc(k.feeds, func(other *Feed) bool { return other == f })
}

func (k *kind) tell(name string) {
	for _, f := range k.feeds {
		f.mark(name)
	}
}

func (f *Feed) mark(name string) {
	if !f.queued[name] && len(f.queue) <= f.bound {
		f.queued[name] = true
		f.queue = append(f.queue, name)
	}
}

// Pending reports whether Take has something to give.
func (f *Feed) Pending() bool { return len(f.queue) > 0 || !f.synced }

// Take returns at most so many changes, oldest first.
func (f *Feed) Take(most int) ([]Delta, error) {
	if len(f.queue) > f.bound {
		return nil, fmt.Errorf("watch of %s ads: %w: more than %d changes behind", f.kind.name, roost.Exhausted, f.bound)
	}
	n := min(most, len(f.queue))
	deltas := make([]Delta, 0, n+1)
	for i, name := range f.queue[:n] {
		f.sync(i, &deltas)
		d := Delta{Name: name}
		if sl := f.kind.ads[name]; sl != nil {
			d.Entry = sl.Entry
		}
		deltas = append(deltas, d)
		delete(f.queued, name)
	}
	f.sync(n, &deltas)
	f.first -= n
	f.queue = slices.Delete(f.queue, 0, n)
	if len(f.queue) == 0 {
		f.queue = nil
	}
	return deltas, nil
}

// sync says that the first picture is complete, when taken names of the queue make it so.
func (f *Feed) sync(taken int, deltas *[]Delta) {
	if !f.synced && taken >= f.first {
		f.synced = true
		*deltas = append(*deltas, Delta{Synced: true})
	}
}
