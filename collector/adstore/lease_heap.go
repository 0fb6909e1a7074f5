package adstore

import (
	"container/heap"
	"time"
)

// renewLease starts the lease of an ad again. A length of 0 or above the limit becomes
// the limit.
func (s *Store) renewLease(sl *nameSlot, now time.Time, length time.Duration) {
	if length <= 0 || length > s.limits.Lease {
		length = s.limits.Lease
	}
	sl.expires = now.Add(length)
	if sl.heapIndex < 0 {
		heap.Push(&s.leases, sl)
		return
	}
	heap.Fix(&s.leases, sl.heapIndex)
}

// Expire removes every ad whose lease has expired, and returns how many those were.
func (s *Store) Expire(now time.Time) int {
	n := 0
	for len(s.leases) > 0 && !now.Before(s.leases[0].expires) {
		s.removeAd(s.leases[0])
		n++
	}
	return n
}

// NextWake returns when the next lease expires. ok is false if there is none.
func (s *Store) NextWake() (at time.Time, ok bool) {
	if len(s.leases) == 0 {
		return time.Time{}, false
	}
	return s.leases[0].expires, true
}

// leaseHeap is a heap of names by the expiry of the lease, then by name.
type leaseHeap []*nameSlot

func (l leaseHeap) Len() int { return len(l) }

func (l leaseHeap) Less(i, j int) bool {
	if !l[i].expires.Equal(l[j].expires) {
		return l[i].expires.Before(l[j].expires)
	}
	return l[i].Name < l[j].Name
}

func (l leaseHeap) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].heapIndex, l[j].heapIndex = i, j
}

func (l *leaseHeap) Push(x any) {
	sl := x.(*nameSlot)
	sl.heapIndex = len(*l)
	*l = append(*l, sl)
}

func (l *leaseHeap) Pop() any {
	old := *l
	sl := old[len(old)-1]
	sl.heapIndex = -1
	*l = old[:len(old)-1]
	return sl
}
