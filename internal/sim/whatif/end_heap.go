package whatif

import (
	"container/heap"

	"github.com/roost-batch/roost/negotiator/match"
)

// taskEnd is the end of a claim's task.
type taskEnd struct {
	at    int64
	claim match.ClaimKey
}

// endHeap is a heap of task ends.
type endHeap []taskEnd

func (e endHeap) Len() int { return len(e) }
func (e endHeap) Less(i, k int) bool {
	a, b := &e[i], &e[k]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.claim.Machine != b.claim.Machine {
		return a.claim.Machine < b.claim.Machine
	}
	return a.claim.ID < b.claim.ID
}
func (e endHeap) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *endHeap) Push(x any)   { *e = append(*e, x.(taskEnd)) }
func (e *endHeap) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// scheduleEnd plans the end of a claim's task, if it is known.
func (p *Simulation) scheduleEnd(key match.ClaimKey, at int64) {
	if at > 0 {
		heap.Push(&p.ends, taskEnd{max(at, p.now), key})
	}
}
