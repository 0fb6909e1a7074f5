package adstore

import (
	"container/heap"
	"time"
)

// lease starts the lease of an ad again. One of no length, or one that is too long, is the longest that is allowed.
func (s *Store) lease(sl *slot, now time.Time, length time.Duration) {
	if length <= 0 || length > s.limits.Lease {
		length = s.limits.Lease
	}
	sl.expires = now.Add(length)
	if sl.place < 0 {
		heap.Push(&s.leases, sl)
		return
	}
	heap.Fix(&s.leases, sl.place)
}

// Expire removes every ad whose lease has ended, and returns how many those were.
func (s *Store) Expire(now time.Time) int {
	n := 0
	for len(s.leases) > 0 && !now.Before(s.leases[0].expires) {
		s.remove(s.leases[0])
		n++
	}
	return n
}

// NextWake is when the next lease ends; ok is false when there is none.
func (s *Store) NextWake() (at time.Time, ok bool) {
	if len(s.leases) == 0 {
		return time.Time{}, false
	}
	return s.leases[0].expires, true
}

// leases is a heap by the end of the lease, then by name.
type leases []*slot

func (l leases) Len() int { return len(l) }

func (l leases) Less(i, j int) bool {
	if !l[i].expires.Equal(l[j].expires) {
		return l[i].expires.Before(l[j].expires)
	}
	return l[i].Name < l[j].Name
}

func (l leases) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

func (l *leases) Push(x any) {
	sl := x.(*slot)
	sl.place = len(*l)
	*l = append(*l, sl)
}

func (l *leases) Pop() any {
	old := *l
	sl := old[len(old)-1]
	sl.place = -1
	*l = old[:len(old)-1]
	return sl
}
