// Package adstore is what a collector knows: ads by type and name, each with a lease, and who follows them.
//
//	           Update                    Update, newer
//	(unknown) ────────▶ stored, leased ◀──────────────┐
//	    ▲                  │   │   └──────────────────┘
//	    └──────────────────┘   └ Update without an ad: the lease starts again
//	  Expire, or Invalidate
//
// Ads of one name are ordered by (Started, Sequence): the start of the daemon, then its count of updates. What is older than what is stored
// is dropped, so that two updates that took different ways cannot leave the older one standing; a daemon that has restarted replaces what its
// former life said, however high that had counted.
package adstore

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Limits bounds a store.
type Limits struct {
	AdBytes    int // of one ad's text, and of all its private attributes together
	Attributes int // of one ad
	AdsPerType int
	AdsPerNode int // of one node, of all types: what one certificate can fill is not the store
	Types      int
	Lease      time.Duration // the longest
}

// DefaultLimits are for pools of up to 100,000 machines.
func DefaultLimits() Limits {
	return Limits{AdBytes: roost.MaxDaemonAdBytes, Attributes: 4096, AdsPerType: 200_000, AdsPerNode: 1024, Types: 64, Lease: time.Hour}
}

// Update is what a daemon says of its ad.
type Update struct {
	Type, Name string
	Node       string // who says it, where a certificate does; "" is not counted
	Serial     string // of the certificate
	Sequence   uint64
	Started    int64 // unix nanoseconds
	Lease      time.Duration
	Ad         string            // empty: as before, only the lease starts again
	Read       *classad.Ad       // what Ad says, where somebody has read it already; nil: it is read here
	Private    map[string]string // for negotiators only
	Invalidate bool              // the daemon is going away
}

// Outcome is what became of an update.
type Outcome uint8

// The outcomes.
const (
	Stored  Outcome = iota // the ad is the new one
	Renewed                // only the lease has changed
	Dropped                // older than what is stored
	Removed                // withdrawn, or was not there
	Resend                 // the lease of an ad that is not here cannot be renewed: send the ad
)

// Store holds the ads. It is not safe for concurrent use; the entries that it hands out never change and may be read by anybody.
type Store struct {
	limits Limits
	types  map[string]*kind
	leases leases
	nodes  map[string]int    // how many ads each node has here
	known  map[string]member // the nodes that have ever advertised here, by their names without regard to case
}

// kind holds the ads of one type. Types are told apart without regard to case, as ClassAds do.
type kind struct {
	name  string           // as first written
	ads   map[string]*slot // by name, without regard to case: as == compares names in requirements
	order []*slot          // by name
	feeds []*Feed
}

// slot is the place of one name; its entry is replaced, never changed.
type slot struct {
	*Entry
	kind    *kind
	node    string // that it counts for, and whose it is
	expires time.Time
	place   int // in the heap of leases
}

// New returns an empty store.
func New(limits Limits) *Store {
	return &Store{limits: limits, types: map[string]*kind{}, nodes: map[string]int{}, known: map[string]member{}}
}

// Update takes an update in. The error says what is wrong with it: it wraps roost.Invalid, or roost.Exhausted when there is no more room.
func (s *Store) Update(now time.Time, u Update) (Outcome, error) {
	if err := checkNames(u); err != nil {
		return Dropped, err
	}
	k := s.types[strings.ToLower(u.Type)]
	var old *slot
	if k != nil {
		old = k.ads[strings.ToLower(u.Name)]
	}
	old, err := s.claim(old, u)
	if err != nil {
		return Dropped, err
	}
	switch {
	case old != nil && (u.Started < old.Started || u.Started == old.Started && u.Sequence < old.Sequence):
		return Dropped, nil
	case u.Invalidate:
		if old != nil {
			s.remove(old)
		}
		return Removed, nil
	case u.Ad == "":
		if old == nil || u.Started != old.Started || u.Sequence != old.Sequence {
			return Resend, nil
		}
		s.lease(old, now, u.Lease)
		return Renewed, nil
	case old != nil && u.Started == old.Started && u.Sequence == old.Sequence && u.Ad == old.Text && maps.Equal(u.Private, old.Private):
		s.lease(old, now, u.Lease)
		return Renewed, nil
	}
	entry, err := newEntry(u, s.limits)
	if err != nil {
		return Dropped, err
	}
	if old == nil {
		if old, err = s.place(u); err != nil {
			return Dropped, err
		}
	}
	old.Entry = entry
	s.lease(old, now, u.Lease)
	old.kind.tell(u.Name)
	return Stored, nil
}

// place makes room for a name that is new. Its entry is set by the caller.
func (s *Store) place(u Update) (*slot, error) {
	k := s.kind(u.Type)
	if k == nil {
		return nil, fmt.Errorf("ads of type %q: %w: there are %d types already", u.Type, roost.Exhausted, len(s.types))
	}
	if len(k.order) >= s.limits.AdsPerType {
		return nil, fmt.Errorf("ad of %s %q: %w: there are %d already", u.Type, u.Name, roost.Exhausted, len(k.order))
	}
	if u.Node != "" && s.nodes[u.Node] >= s.limits.AdsPerNode {
		return nil, fmt.Errorf("ad of %s %q: %w: node %s has %d already, and no more are taken from one node", u.Type, u.Name, roost.Exhausted, u.Node, s.nodes[u.Node])
	}
	sl := &slot{Entry: &Entry{Name: u.Name}, kind: k, node: u.Node, place: -1}
	s.nodes[u.Node]++
	k.ads[strings.ToLower(u.Name)] = sl
	at, _ := slices.BinarySearchFunc(k.order, u.Name, bySlotName)
	k.order = slices.Insert(k.order, at, sl)
	return sl, nil
}

// kind is the type of that name, made if it is new and there is room; nil if there is none.
func (s *Store) kind(name string) *kind {
	key := strings.ToLower(name)
	k := s.types[key]
	if k == nil && len(s.types) < s.limits.Types {
		k = &kind{name: name, ads: map[string]*slot{}}
		s.types[key] = k
	}
	return k
}

func bySlotName(sl *slot, name string) int { return strings.Compare(sl.Name, name) }

func (s *Store) remove(sl *slot) {
	k := sl.kind
	delete(k.ads, strings.ToLower(sl.Name))
	at, _ := slices.BinarySearchFunc(k.order, sl.Name, bySlotName)
	k.order = slices.Delete(k.order, at, at+1)
	if s.nodes[sl.node]--; s.nodes[sl.node] == 0 {
		delete(s.nodes, sl.node)
	}
	if sl.place >= 0 {
		heap.Remove(&s.leases, sl.place)
	}
	k.tell(sl.Name)
}

// Count is the number of ads of all types.
func (s *Store) Count() int { return len(s.leases) }

// List returns the ads of that type in the order of their names, of all types in the order of the types' names when it is empty.
func (s *Store) List(typ string) []*Entry {
	keys := []string{strings.ToLower(typ)}
	if typ == "" {
		keys = slices.Sorted(maps.Keys(s.types))
	}
	var list []*Entry
	for _, key := range keys {
		if k := s.types[key]; k != nil {
			list = slices.Grow(list, len(k.order))
			for _, sl := range k.order {
				list = append(list, sl.Entry)
			}
		}
	}
	return list
}

// check panics if an invariant is broken. Tests call it after each event.
func (s *Store) check() {
	n := 0
	nodes := map[string]int{}
	for _, k := range s.types {
		n += len(k.order)
		for i, sl := range k.order {
			nodes[sl.node]++
			if k.ads[strings.ToLower(sl.Name)] != sl || sl.kind != k || s.leases[sl.place] != sl || i > 0 && k.order[i-1].Name >= sl.Name {
				panic(fmt.Sprintf("ad %s of type %s is not where it should be", sl.Name, k.name))
			}
		}
		if len(k.ads) != len(k.order) {
			panic(fmt.Sprintf("type %s has %d ads by name and %d in order", k.name, len(k.ads), len(k.order)))
		}
	}
	if !maps.Equal(nodes, s.nodes) {
		panic(fmt.Sprintf("%v ads of each node, and %v are counted", nodes, s.nodes))
	}
	if n != len(s.leases) {
		panic(fmt.Sprintf("%d ads have %d leases", n, len(s.leases)))
	}
}
