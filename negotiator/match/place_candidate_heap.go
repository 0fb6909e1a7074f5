package match

import (
	"cmp"
	"slices"
)

// candidateHeap is a heap of machines for one want, the best first. It keeps no more than
// it is likely to need: of many that are offered it drops the worst and notes how good
// the best of them may have been. What comes to be no better than that edge is no answer:
// the machines have to be looked at again.
type candidateHeap struct {
	list          []placementCandidate
	minLength     int                // how many to keep at least; 0: all
	truncated     bool               // some were dropped
	dropThreshold placementCandidate // cut: none that was dropped is better
}

// isBetter orders candidates. Machines come in the order of their names.
func (a *placementCandidate) isBetter(b *placementCandidate) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.softScore != b.softScore:
		return a.softScore < b.softScore
	case a.score != b.score:
		return a.score < b.score
	}
	return a.machine < b.machine
}

func compareCandidates(a, b placementCandidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.softScore, b.softScore), cmp.Compare(a.score, b.score),
		cmp.Compare(a.machine, b.machine))
}

// droppedMayBeBetter reports whether machines that were dropped may be better than a
// candidate.
func (h *candidateHeap) droppedMayBeBetter(c *placementCandidate) bool {
	return h.truncated && !c.isBetter(&h.dropThreshold)
}

// addUnordered adds a candidate before the heap is made.
func (h *candidateHeap) addUnordered(c placementCandidate) {
	if h.droppedMayBeBetter(&c) {
		return
	}
	if h.list = append(h.list, c); h.minLength > 0 && len(h.list) >= 2*h.minLength {
		slices.SortFunc(h.list, compareCandidates)
		h.list = h.list[:h.minLength]
		h.truncated, h.dropThreshold = true, h.list[h.minLength-1]
	}
}

// heapify puts what was offered in order.
func (h *candidateHeap) heapify() {
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.siftDown(i)
	}
}

// push adds a candidate.
func (h *candidateHeap) push(c placementCandidate) {
	if h.droppedMayBeBetter(&c) {
		return
	}
	h.list = append(h.list, c)
	for i := len(h.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.list[i].isBetter(&h.list[parent]) {
			return
		}
		h.list[i], h.list[parent] = h.list[parent], h.list[i]
		i = parent
	}
}

// pop drops the best.
func (h *candidateHeap) pop() {
	last := len(h.list) - 1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	h.siftDown(0)
}

// replaceBest puts another candidate in the place of the best.
func (h *candidateHeap) replaceBest(c placementCandidate) {
	if h.droppedMayBeBetter(&c) {
		h.pop()
		return
	}
	h.list[0] = c
	h.siftDown(0)
}

// siftDown lets what stands at i sink to where it belongs.
func (h *candidateHeap) siftDown(i int) {
	list := h.list
	for {
		least := 2*i + 1
		if least >= len(list) {
			return
		}
		if right := least + 1; right < len(list) && list[right].isBetter(&list[least]) {
			least = right
		}
		if !list[least].isBetter(&list[i]) {
			return
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}
