package match

import (
	"cmp"
	"slices"
)

// candidateHeap is a heap of machines for one request, the best first. It retains no more
// than the request is likely to need: of many candidates it drops the worst and records
// the best that may have been dropped. A candidate that is no better than that threshold
// is not returned; then the machines must be looked at again.
type candidateHeap struct {
	list          []placementCandidate
	minLength     int                // candidates to retain at least; 0: all
	truncated     bool               // some candidates were dropped
	dropThreshold placementCandidate // no dropped candidate is better than this one
}

// isBetter orders candidates; equals are in the order of machine names.
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

// droppedMayBeBetter reports whether dropped machines may be better than a candidate.
func (h *candidateHeap) droppedMayBeBetter(c *placementCandidate) bool {
	return h.truncated && !c.isBetter(&h.dropThreshold)
}

// addUnordered adds a candidate before heapify.
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

// heapify establishes the heap order.
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

// pop removes the best candidate.
func (h *candidateHeap) pop() {
	last := len(h.list) - 1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	h.siftDown(0)
}

// replaceBest replaces the best candidate.
func (h *candidateHeap) replaceBest(c placementCandidate) {
	if h.droppedMayBeBetter(&c) {
		h.pop()
		return
	}
	h.list[0] = c
	h.siftDown(0)
}

// siftDown moves the candidate at i down to its place in the heap.
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
