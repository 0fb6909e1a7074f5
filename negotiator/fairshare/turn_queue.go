package fairshare

import (
	"container/heap"
	"math"
)

// WaitingSubmitter is a submitter with requests in this cycle.
type WaitingSubmitter struct {
	Submitter         Submitter
	EffectivePriority float64 // effective priority; > 0
	Usage             float64 // cores in use
	Floor             float64 // cores that it gets before anyone exceeds its own floor; 0: none
	Ceiling           float64 // most cores that it may have; 0: unlimited
}

// TurnQueue says whose turn it is while resources are granted. HTCondor computes a pie:
// each submitter may have (1/π_i)/Σ(1/π_j) of what there is, less what it has. With few
// and large tasks that leaves the rounding to chance. So here the pie is divided a slice
// at a time, as water fills a basin: the next turn belongs to the submitter with the
// lowest level, which is usage·π. A slice raises the level, and in the end all levels are
// equal up to one task.
type TurnQueue struct {
	queue              turnHeap
	index              []*turnEntry // by claimant
	inversePrioritySum float64      // Σ 1/π of the remaining claimants
	entries            []turnEntry
}

type turnEntry struct {
	WaitingSubmitter
	claimant, heapIndex int // number of the claimant, and its index in the heap; -1 after it has left
}

// usageLevel returns the level of an entry. It is negative below the floor, in proportion
// to it: floors come first, as in HTCondor's round of floors.
func (s *turnEntry) usageLevel() float64 {
	if s.Usage < s.Floor {
		return s.Usage/s.Floor - 1
	}
	return s.Usage * s.EffectivePriority
}

// slicesLeft is the number of slices that each submitter's share of the rest is cut into.
const slicesLeft = 16

// NewTurnQueue returns a queue of those claimants. Their numbers are their indexes in the
// list.
func NewTurnQueue(claimants []WaitingSubmitter) *TurnQueue {
	t := &TurnQueue{}
	t.Restart(claimants)
	return t
}

// Restart begins again with other claimants, in the same memory.
func (t *TurnQueue) Restart(claimants []WaitingSubmitter) {
	n := len(claimants)
	if cap(t.entries) < n {
		t.entries, t.index, t.queue = make([]turnEntry, n), make([]*turnEntry, n), make(turnHeap, n)
	}
	t.entries, t.index, t.queue, t.inversePrioritySum = t.entries[:n], t.index[:n], t.queue[:n], 0
	for i, c := range claimants {
		if !(c.EffectivePriority > 0) {
			c.EffectivePriority = LeastPriority * DefaultFactor
		}
		s := &t.entries[i]
		*s = turnEntry{WaitingSubmitter: c, claimant: i, heapIndex: i}
		t.index[i], t.queue[i] = s, s
		t.inversePrioritySum += 1 / c.EffectivePriority
	}
	heap.Init(&t.queue)
}

// Next returns whose turn it is and how many cores it may take in this turn. The slice
// holds if that many are free. A turn is always good for one task, however small the
// slice. The caller must check that this task is below the claimant's ceiling.
func (t *TurnQueue) Next(free float64) (claimant int, slice float64, ok bool) {
	if len(t.queue) == 0 {
		return 0, 0, false
	}
	s := t.queue[0]
	most := math.Inf(1)
	if s.Ceiling > 0 {
		most = max(0, s.Ceiling-s.Usage)
	}
	if len(t.queue) == 1 {
		return s.claimant, most, true
	}
	if s.Usage < s.Floor {
		return s.claimant, min(most, (s.Floor-s.Usage)/slicesLeft), true
	}
	// Up to the level of the next one, or one slice of its share of what is left.
	gap := (t.queue.secondLevel() - s.usageLevel()) / s.EffectivePriority
	return s.claimant, min(most, max(gap, free/(s.EffectivePriority*t.inversePrioritySum*slicesLeft))), true
}

// AddTaken adds cores that the claimant got.
func (t *TurnQueue) AddTaken(claimant int, cores float64) {
	s := t.index[claimant]
	s.Usage += max(0, cores)
	if s.heapIndex >= 0 {
		heap.Fix(&t.queue, s.heapIndex)
	}
}

// RemoveClaimant removes the claimant: it wants nothing more, or nothing that is left
// suits it.
func (t *TurnQueue) RemoveClaimant(claimant int) {
	s := t.index[claimant]
	if s.heapIndex >= 0 {
		heap.Remove(&t.queue, s.heapIndex)
		t.inversePrioritySum -= 1 / s.EffectivePriority
	}
}

// turnHeap is a heap by level, then by effective priority, then by name and number. The
// order never depends on chance.
type turnHeap []*turnEntry

func (q turnHeap) Len() int { return len(q) }

func (q turnHeap) Less(i, j int) bool {
	a, b := q[i], q[j]
	if la, lb := a.usageLevel(), b.usageLevel(); la != lb {
		return la < lb
	}
	if a.EffectivePriority != b.EffectivePriority {
		return a.EffectivePriority < b.EffectivePriority
	}
	if c := a.Submitter.Compare(b.Submitter); c != 0 {
		return c < 0
	}
	return a.claimant < b.claimant
}

func (q turnHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].heapIndex, q[j].heapIndex = i, j
}

func (q *turnHeap) Push(x any) { *q = append(*q, x.(*turnEntry)) }

func (q *turnHeap) Pop() any {
	old := *q
	s := old[len(old)-1]
	s.heapIndex = -1
	*q = old[:len(old)-1]
	return s
}

// secondLevel returns the second lowest level.
func (q turnHeap) secondLevel() float64 {
	if len(q) == 2 {
		return q[1].usageLevel()
	}
	return min(q[1].usageLevel(), q[2].usageLevel())
}
