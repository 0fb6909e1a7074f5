package share

import (
	"container/heap"
	"math"
)

// Claimant is a submitter that wants something now.
type Claimant struct {
	Submitter Submitter
	Effective float64 // effective priority; > 0
	Held      float64 // cores it has already
	Floor     float64 // cores that it has before anybody gets more than its own floor; 0 for none
	Ceiling   float64 // cores that it never has more of; 0 for none
}

// Turns says whose turn it is while something is handed out. HTCondor spins a pie: each submitter may have (1/π_i)/Σ(1/π_j) of what there is,
// less what it has. With few and large pieces a pie leaves the rounding to chance, so here the pie is eaten a slice at a time, as water
// fills a basin: the next turn is of whoever has least in proportion to its share, and its level is held·π. Whoever takes a slice rises, and in the
// end all stand at one level, give or take one piece.
type Turns struct {
	queue levels
	index []*seat // by claimant
	sum   float64 // Σ 1/π of those who are still in
	seats []seat
}

type seat struct {
	Claimant
	id, place int // the claimant's number, and where it is in the heap; -1 when it has left
}

// level is below 0 as long as the seat is below its floor, in proportion to it: floors come first, as in HTCondor's round of floors.
func (s *seat) level() float64 {
	if s.Held < s.Floor {
		return s.Held/s.Floor - 1
	}
	return s.Held * s.Effective
}

// slicesLeft is into how many slices what is left is cut, for each submitter.
const slicesLeft = 16

// NewTurns starts with those claimants; they are named by their numbers in the list from then on.
func NewTurns(claimants []Claimant) *Turns {
	t := &Turns{}
	t.Begin(claimants)
	return t
}

// Begin starts anew with other claimants, in the same memory.
func (t *Turns) Begin(claimants []Claimant) {
	n := len(claimants)
	if cap(t.seats) < n {
		t.seats, t.index, t.queue = make([]seat, n), make([]*seat, n), make(levels, n)
	}
	t.seats, t.index, t.queue, t.sum = t.seats[:n], t.index[:n], t.queue[:n], 0
	for i, c := range claimants {
		if !(c.Effective > 0) {
			c.Effective = LeastPriority * DefaultFactor
		}
		s := &t.seats[i]
		*s = seat{Claimant: c, id: i, place: i}
		t.index[i], t.queue[i] = s, s
		t.sum += 1 / c.Effective
	}
	heap.Init(&t.queue)
}

// Next returns whose turn it is and how many cores it may take before the turn is over, when that many are still free. A turn is always good for
// one piece, however small the slice; whether that piece is below the claimant's ceiling is for the caller to see to.
func (t *Turns) Next(free float64) (claimant int, slice float64, ok bool) {
	if len(t.queue) == 0 {
		return 0, 0, false
	}
	s := t.queue[0]
	most := math.Inf(1)
	if s.Ceiling > 0 {
		most = max(0, s.Ceiling-s.Held)
	}
	if len(t.queue) == 1 {
		return s.id, most, true
	}
	if s.Held < s.Floor {
		return s.id, min(most, (s.Floor-s.Held)/slicesLeft), true
	}
	// Up to the level of the next one, or one slice of its share of what is left.
	gap := (t.queue.second() - s.level()) / s.Effective
	return s.id, min(most, max(gap, free/(s.Effective*t.sum*slicesLeft))), true
}

// Took notes that the claimant got so many cores.
func (t *Turns) Took(claimant int, cores float64) {
	s := t.index[claimant]
	s.Held += max(0, cores)
	if s.place >= 0 {
		heap.Fix(&t.queue, s.place)
	}
}

// Leave takes the claimant out: it wants nothing more, or nothing that is left serves it.
func (t *Turns) Leave(claimant int) {
	s := t.index[claimant]
	if s.place >= 0 {
		heap.Remove(&t.queue, s.place)
		t.sum -= 1 / s.Effective
	}
}

// levels is a heap by level, then by effective priority, then by name and number, so that the order never depends on chance.
type levels []*seat

func (q levels) Len() int { return len(q) }

func (q levels) Less(i, j int) bool {
	a, b := q[i], q[j]
	if la, lb := a.level(), b.level(); la != lb {
		return la < lb
	}
	if a.Effective != b.Effective {
		return a.Effective < b.Effective
	}
	if c := a.Submitter.Compare(b.Submitter); c != 0 {
		return c < 0
	}
	return a.id < b.id
}

func (q levels) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *levels) Push(x any) { *q = append(*q, x.(*seat)) }

func (q *levels) Pop() any {
	old := *q
	s := old[len(old)-1]
	s.place = -1
	*q = old[:len(old)-1]
	return s
}

// second is the lowest level but that of the first.
func (q levels) second() float64 {
	if len(q) == 2 {
		return q[1].level()
	}
	return min(q[1].level(), q[2].level())
}
