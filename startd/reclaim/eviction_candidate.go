package reclaim

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// EvictionCandidate is a claim that may have to go because memory is short. Production is
// among them only when the owner of the machine wants it back.
type EvictionCandidate struct {
	ID         uint64
	Band       roost.PriorityBand
	Reclaimed  bool          // it has nothing of its own
	Excess     roost.Bytes   // uses so much more than it asked for
	Began      time.Duration // when its task started
	Freed      roost.Bytes   // what there would be more of without it
	IsVacating bool          // it goes already
}

// SelectVictims says who goes so that need is met: whoever uses more than it asked for,
// the most first (Borg §5.5); then those in reclaimed room before those that have what
// they have to themselves, the lowest band first, and of one band the youngest, for it
// loses least. Those that go already count. Of those chosen, none stays in vain: who is
// not needed once all are chosen is let off. If all together are not enough, all go.
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
	for i := n - 1; i >= 0; i-- { // those that would be the last to go are the first to be let off
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

// MemoryShortfall is how much memory has to be got back on a machine that has so little
// left; 0 while it has enough. Below a fiftieth, but at least 64 MiB, the kernel begins
// to look for somebody to kill, and it would not look at bands; so much again is got
// back, so that it is not short again at once.
func MemoryShortfall(available, total roost.Bytes) roost.Bytes {
	least := max(total/50, 64*roost.MiB)
	if total <= 0 || available >= least {
		return 0
	}
	return 2*least - available
}

// ThrottleShares is what each claim in reclaimed room may have of the processor while
// others want it back: the rest of the capacity, by what they asked for, but a tenth of
// that at least, so that they go on. Deficit is by how much reservations exceed the
// capacity, asked what those claims have asked for together.
func ThrottleShares(deficit, asked, one roost.MilliCPU) roost.MilliCPU {
	const least = 10
	rest := max(asked-deficit, 0)
	if asked <= 0 {
		return one
	}
	return max(roost.MilliCPU(float64(one)*float64(rest)/float64(asked)), one/least, 1)
}
