// Package adstore is what a collector knows: ads by type and name, each with a lease, and
// who follows them.
//
//	           Update                    Update, newer
//	(unknown) ────────▶ stored, leased ◀──────────────┐
//	    ▲                  │   │   └──────────────────┘
//	    └──────────────────┘   └ Update without an ad: the lease starts again
//	  Expire, or Invalidate
//
// Ads of one name are ordered by (Started, Sequence): the start of the daemon, then its
// count of updates. What is older than what is stored is dropped, so that two updates
// that took different ways cannot leave the older one standing; a daemon that has
// restarted replaces what its former life said, however high that had counted.
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

// SizeLimits bounds a store.
type SizeLimits struct {
	AdBytes    int // of one ad's text, and of all its private attributes together
	Attributes int // of one ad
	AdsPerType int
	AdsPerNode int // of one node, of all types: what one certificate can fill is not the store
	Types      int
	Lease      time.Duration // the longest
}

// DefaultLimits are for pools of up to 100,000 machines.
func DefaultLimits() SizeLimits {
	return SizeLimits{AdBytes: roost.MaxDaemonAdBytes, Attributes: 4096, AdsPerType: 200_000, AdsPerNode: 1024,
		Types: 64, Lease: time.Hour}
}

// AdUpdate is what a daemon says of its ad.
type AdUpdate struct {
	Type, Name string
	Node       string // who says it, where a certificate does; "" is not counted
	Serial     string // of the certificate
	Sequence   uint64
	Started    int64 // unix nanoseconds
	Lease      time.Duration
	Ad         string            // empty: as before, only the lease starts again
	ParsedAd   *classad.Ad       // what Ad says, where somebody has read it already; nil: it is read here
	Private    map[string]string // for negotiators only
	Invalidate bool              // the daemon is going away
}

// UpdateOutcome is what became of an update.
type UpdateOutcome uint8

// The outcomes.
const (
	Stored    UpdateOutcome = iota // the ad is the new one
	Renewed                        // only the lease has changed
	OutOfDate                      // older than what is stored
	Removed                        // withdrawn, or was not there
	ResendAd                       // the lease of an ad that is not here cannot be renewed: send the ad
)

// Store holds the ads. It is not safe for concurrent use; the entries that it hands out
// never change and may be read by anybody.
type Store struct {
	limits    SizeLimits
	types     map[string]*adType
	leases    leaseHeap
	adsByNode map[string]int // how many ads each node has here
	// the nodes that have ever advertised here, by their names without regard to case
	nodesByName map[string]nodeIdentity
}

// adType holds the ads of one type. Types are told apart without regard to case, as
// ClassAds do.
type adType struct {
	name        string               // as first written
	ads         map[string]*nameSlot // by name, without regard to case: as == compares names in requirements
	sortedNames []*nameSlot          // by name
	feeds       []*TypeFeed
}

// nameSlot is the place of one name; its entry is replaced, never changed.
type nameSlot struct {
	*StoredAd
	adType    *adType
	node      string // that it counts for, and whose it is
	expires   time.Time
	heapIndex int // in the heap of leases
}

// New returns an empty store.
func New(limits SizeLimits) *Store {
	return &Store{limits: limits, types: map[string]*adType{}, adsByNode: map[string]int{},
		nodesByName: map[string]nodeIdentity{}}
}

// Update takes an update in. The error says what is wrong with it: it wraps
// roost.Invalid, or roost.Exhausted when there is no more room.
func (s *Store) Update(now time.Time, u AdUpdate) (UpdateOutcome, error) {
	if err := checkNames(u); err != nil {
		return OutOfDate, err
	}
	k := s.types[strings.ToLower(u.Type)]
	var old *nameSlot
	if k != nil {
		old = k.ads[strings.ToLower(u.Name)]
	}
	old, err := s.checkNameOwner(old, u)
	if err != nil {
		return OutOfDate, err
	}
	switch {
	case old != nil && (u.Started < old.Started || u.Started == old.Started && u.Sequence < old.Sequence):
		return OutOfDate, nil
	case u.Invalidate:
		if old != nil {
			s.removeAd(old)
		}
		return Removed, nil
	case u.Ad == "":
		if old == nil || u.Started != old.Started || u.Sequence != old.Sequence {
			return ResendAd, nil
		}
		s.renewLease(old, now, u.Lease)
		return Renewed, nil
	case old != nil && u.Started == old.Started && u.Sequence == old.Sequence && u.Ad == old.Text &&
		maps.Equal(u.Private, old.Private):
		s.renewLease(old, now, u.Lease)
		return Renewed, nil
	}
	entry, err := newEntry(u, s.limits)
	if err != nil {
		return OutOfDate, err
	}
	if old == nil {
		if old, err = s.makeRoomForName(u); err != nil {
			return OutOfDate, err
		}
	}
	old.StoredAd = entry
	s.renewLease(old, now, u.Lease)
	old.adType.notifyFeeds(u.Name)
	return Stored, nil
}

// makeRoomForName makes room for a name that is new. Its entry is set by the caller.
func (s *Store) makeRoomForName(u AdUpdate) (*nameSlot, error) {
	k := s.adTypeNamed(u.Type)
	if k == nil {
		return nil, fmt.Errorf("ads of type %q: %w: there are %d types already", u.Type, roost.Exhausted, len(s.types))
	}
	if len(k.sortedNames) >= s.limits.AdsPerType {
		return nil, fmt.Errorf("ad of %s %q: %w: there are %d already", u.Type, u.Name, roost.Exhausted,
			len(k.sortedNames))
	}
	if u.Node != "" && s.adsByNode[u.Node] >= s.limits.AdsPerNode {
		return nil, fmt.Errorf("ad of %s %q: %w: node %s has %d already, and no more are taken from one node", u.Type,
			u.Name, roost.Exhausted, u.Node, s.adsByNode[u.Node])
	}
	sl := &nameSlot{StoredAd: &StoredAd{Name: u.Name}, adType: k, node: u.Node, heapIndex: -1}
	s.adsByNode[u.Node]++
	k.ads[strings.ToLower(u.Name)] = sl
	at, _ := slices.BinarySearchFunc(k.sortedNames, u.Name, compareSlotNames)
	k.sortedNames = slices.Insert(k.sortedNames, at, sl)
	return sl, nil
}

// adTypeNamed is the type of that name, made if it is new and there is room; nil if there
// is none.
func (s *Store) adTypeNamed(name string) *adType {
	key := strings.ToLower(name)
	k := s.types[key]
	if k == nil && len(s.types) < s.limits.Types {
		k = &adType{name: name, ads: map[string]*nameSlot{}}
		s.types[key] = k
	}
	return k
}

func compareSlotNames(sl *nameSlot, name string) int { return strings.Compare(sl.Name, name) }

func (s *Store) removeAd(sl *nameSlot) {
	k := sl.adType
	delete(k.ads, strings.ToLower(sl.Name))
	at, _ := slices.BinarySearchFunc(k.sortedNames, sl.Name, compareSlotNames)
	k.sortedNames = slices.Delete(k.sortedNames, at, at+1)
	if s.adsByNode[sl.node]--; s.adsByNode[sl.node] == 0 {
		delete(s.adsByNode, sl.node)
	}
	if sl.heapIndex >= 0 {
		heap.Remove(&s.leases, sl.heapIndex)
	}
	k.notifyFeeds(sl.Name)
}

// Count is the number of ads of all types.
func (s *Store) Count() int { return len(s.leases) }

// List returns the ads of that type in the order of their names, of all types in the
// order of the types' names when it is empty.
func (s *Store) List(typ string) []*StoredAd {
	keys := []string{strings.ToLower(typ)}
	if typ == "" {
		keys = slices.Sorted(maps.Keys(s.types))
	}
	var list []*StoredAd
	for _, key := range keys {
		if k := s.types[key]; k != nil {
			list = slices.Grow(list, len(k.sortedNames))
			for _, sl := range k.sortedNames {
				list = append(list, sl.StoredAd)
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
		n += len(k.sortedNames)
		for i, sl := range k.sortedNames {
			nodes[sl.node]++
			if k.ads[strings.ToLower(sl.Name)] != sl || sl.adType != k || s.leases[sl.heapIndex] != sl ||
				i > 0 && k.sortedNames[i-1].Name >= sl.Name {
				panic(fmt.Sprintf("ad %s of type %s is not where it should be", sl.Name, k.name))
			}
		}
		if len(k.ads) != len(k.sortedNames) {
			panic(fmt.Sprintf("type %s has %d ads by name and %d in order", k.name, len(k.ads), len(k.sortedNames)))
		}
	}
	if !maps.Equal(nodes, s.adsByNode) {
		panic(fmt.Sprintf("%v ads of each node, and %v are counted", nodes, s.adsByNode))
	}
	if n != len(s.leases) {
		panic(fmt.Sprintf("%d ads have %d leases", n, len(s.leases)))
	}
}
