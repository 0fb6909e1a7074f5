package live

import (
	"container/heap"

	"github.com/roost-batch/roost/negotiator/match"
)

// end is when a claim's task ends.
type end struct {
	at    int64
	claim match.ClaimKey
}

// ends is a heap.
type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, k int) bool {
	a, b := &e[i], &e[k]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.claim.Machine != b.claim.Machine {
		return a.claim.Machine < b.claim.Machine
	}
	return a.claim.ID < b.claim.ID
}
func (e ends) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// plan notes when the task of a claim ends, if that is known.
func (p *Play) plan(key match.ClaimKey, at int64) {
	if at > 0 {
		heap.Push(&p.ends, end{max(at, p.now), key})
	}
}
