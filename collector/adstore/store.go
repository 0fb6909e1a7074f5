// Package adstore is the core of the collector. It stores ads by type and name, each with
// a lease, and the feeds of their watchers.
//
//	           Update                    Update, newer
//	(unknown) ────────▶ stored, leased ◀──────────────┐
//	    ▲                  │   │   └──────────────────┘
//	    └──────────────────┘   └ Update without an ad: the lease starts again
//	  Expire, or Invalidate
//
// Ads of one name are ordered by (Started, Sequence): the start of the daemon, then its
// count of updates. An ad older than the stored one is dropped, so that two updates on
// different ways cannot leave the older one stored. A restarted daemon replaces the ads
// of its earlier process, whatever sequence that had reached.
package adstore

import (
	"container/heap"
	"fmt"
	"maps"
	"net/netip"
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
	AdsPerNode int // of one node, of all types, so that one certificate cannot fill the store
	Types      int
	Lease      time.Duration // the longest
}

// DefaultLimits returns the limits for pools of up to 100,000 machines.
func DefaultLimits() SizeLimits {
	return SizeLimits{AdBytes: roost.MaxDaemonAdBytes, Attributes: 4096, AdsPerType: 200_000, AdsPerNode: 1024,
		Types: 64, Lease: time.Hour}
}

// AdUpdate is a daemon's update of its ad.
type AdUpdate struct {
	Type, Name string
	Node       string     // the node in the certificate of the sender; "": none, and not counted
	Serial     string     // serial number of the certificate
	From       netip.Addr // address of the sender; invalid: a daemon on this host
	Sequence   uint64
	Started    int64 // start of the daemon, in unix nanoseconds
	Lease      time.Duration
	Ad         string            // text of the ad; empty: unchanged, only the lease starts again
	ParsedAd   *classad.Ad       // Ad in parsed form, if a caller has parsed it; nil: the store parses it
	Private    map[string]string // private attributes, for negotiators only
	Invalidate bool              // the daemon shuts down, and its ad is removed
}

// UpdateOutcome is the result of an update.
type UpdateOutcome uint8

// The outcomes.
const (
	Stored    UpdateOutcome = iota // the ad is the new one
	Renewed                        // only the lease has changed
	OutOfDate                      // older than the stored ad
	Removed                        // removed, or did not exist
	ResendAd                       // a lease cannot be renewed without an ad: the daemon must send the ad
)

// Store holds the ads. It is not safe for concurrent use. The entries that it returns
// never change and may be read by any goroutine.
type Store struct {
	limits    SizeLimits
	types     map[string]*adType
	leases    leaseHeap
	adsByNode map[string]int // number of ads by node
	// the nodes that have ever advertised here, by name in lower case
	nodesByName map[string]nodeIdentity
}

// adType holds the ads of one type. Type names are compared without regard to case, as in
// ClassAds.
type adType struct {
	name        string               // as first written
	ads         map[string]*nameSlot // by name in lower case, because == in requirements compares names so
	sortedNames []*nameSlot          // in order of names
	feeds       []*TypeFeed
}

// nameSlot holds the ad of one name. Its entry is replaced, never changed.
type nameSlot struct {
	*StoredAd
	adType    *adType
	node      string // the node that owns the name and for which the ad counts
	expires   time.Time
	heapIndex int // in the heap of leases
}

// New returns an empty store.
func New(limits SizeLimits) *Store {
	return &Store{limits: limits, types: map[string]*adType{}, adsByNode: map[string]int{},
		nodesByName: map[string]nodeIdentity{}}
}

// Update applies an update. An error says why the update is refused. It wraps a
// roost.ErrorKind: roost.Exhausted if the store is full.
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

// makeRoomForName adds a slot for a new name. The caller sets its entry.
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

// adTypeNamed returns the type with a name and adds a missing one if there is room, else
// nil.
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

// Count returns the number of ads of all types.
func (s *Store) Count() int { return len(s.leases) }

// List returns the ads of a type in order of their names. An empty type means all types,
// in order of the types' names.
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
