package reclaim

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// EvictionCandidate is a claim that may be evicted because memory is short. Production
// claims are candidates only when the machine owner wants the machine back.
type EvictionCandidate struct {
	ID         uint64
	Band       roost.PriorityBand
	Reclaimed  bool          // it runs on reclaimed resources
	Excess     roost.Bytes   // memory used beyond the request
	Began      time.Duration // when its task started
	Freed      roost.Bytes   // memory that its eviction would free
	IsVacating bool          // it is being evicted already
}

// SelectVictims selects the claims to evict so that need is met. The first are those that
// use more than their request, largest excess first (Borg §5.5). Then claims on reclaimed
// resources come before the others, lower bands first, and within a band the youngest,
// which loses least. Claims that are being evicted already count. A claim that turns out
// to be unnecessary once all are selected is dropped again. If all together are not
// enough, all are selected.
func SelectVictims(need roost.Bytes, all []EvictionCandidate) []uint64 {
	var list []EvictionCandidate
	for _, t := range all {
		switch {
		case t.IsVacating:
			need -= t.Freed
		case t.Freed > 0:
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b EvictionCandidate) int {
		return cmp.Or(cmp.Compare(b.Excess, a.Excess), -compareBool(a.Reclaimed, b.Reclaimed),
			cmp.Compare(a.Band, b.Band), cmp.Compare(b.Began, a.Began), cmp.Compare(b.ID, a.ID))
	})
	n := 0
	for ; n < len(list) && need > 0; n++ {
		need -= list[n].Freed
	}
	var chosen []uint64
	for i := n - 1; i >= 0; i-- { // the last ones selected are the first to be dropped
		if t := list[i]; need+t.Freed <= 0 {
			need += t.Freed
			continue
		}
		chosen = append(chosen, list[i].ID)
	}
	slices.Reverse(chosen)
	return chosen
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// MemoryShortfall returns how much memory a machine must get back, or 0 if it has enough.
// The threshold is a fiftieth of the total, but at least 64 MiB: below it the kernel's
// OOM killer starts, which ignores bands. Twice the threshold is restored, so that memory
// is not short again at once.
func MemoryShortfall(available, total roost.Bytes) roost.Bytes {
	least := max(total/50, 64*roost.MiB)
	if total <= 0 || available >= least {
		return 0
	}
	return 2*least - available
}

// ThrottleShares returns the CPU share of a claim on reclaimed resources while others
// want them back. The claim requested one. The remaining capacity is divided in
// proportion to the requests, but each claim gets at least a tenth of its own, so that it
// makes progress. Deficit is by how much reservations exceed the capacity, and asked the
// sum of the requests of those claims.
func ThrottleShares(deficit, asked, one roost.MilliCPU) roost.MilliCPU {
	const least = 10
	rest := max(asked-deficit, 0)
	if asked <= 0 {
		return one
	}
	return max(roost.MilliCPU(float64(one)*float64(rest)/float64(asked)), one/least, 1)
}
