package match

import (
	"cmp"
	"slices"
)

// candidates is a heap of machines for one want, the best first. It keeps no more than it is likely to need: of many that are offered it drops the
// worst and notes how good the best of them may have been. What comes to be no better than that edge is no answer: the machines have to be
// looked at again.
type candidates struct {
	list []candidate
	keep int       // how many to keep at least; 0: all
	cut  bool      // some were dropped
	edge candidate // cut: none that was dropped is better
}

// better orders candidates. Machines come in the order of their names.
func (a *candidate) better(b *candidate) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.far != b.far:
		return a.far < b.far
	case a.score != b.score:
		return a.score < b.score
	}
	return a.at < b.at
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.far, b.far), cmp.Compare(a.score, b.score), cmp.Compare(a.at, b.at))
}

// beyond reports whether machines that were dropped may be better than a candidate.
func (h *candidates) beyond(c *candidate) bool { return h.cut && !c.better(&h.edge) }

// offer adds a candidate before the heap is made.
func (h *candidates) offer(c candidate) {
	if h.beyond(&c) {
		return
	}
	if h.list = append(h.list, c); h.keep > 0 && len(h.list) >= 2*h.keep {
		slices.SortFunc(h.list, compareCandidates)
		h.list = h.list[:h.keep]
		h.cut, h.edge = true, h.list[h.keep-1]
	}
}

// make puts what was offered in order.
func (h *candidates) make() {
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// push adds a candidate.
func (h *candidates) push(c candidate) {
	if h.beyond(&c) {
		return
	}
	h.list = append(h.list, c)
	for i := len(h.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.list[i].better(&h.list[parent]) {
			return
		}
		h.list[i], h.list[parent] = h.list[parent], h.list[i]
		i = parent
	}
}

// pop drops the best.
func (h *candidates) pop() {
	last := len(h.list) - 1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	h.down(0)
}

// replace puts another candidate in the place of the best.
func (h *candidates) replace(c candidate) {
	if h.beyond(&c) {
		h.pop()
		return
	}
	h.list[0] = c
	h.down(0)
}

// down lets what stands at i sink to where it belongs.
func (h *candidates) down(i int) {
	list := h.list
	for {
		least := 2*i + 1
		if least >= len(list) {
			return
		}
		if right := least + 1; right < len(list) && list[right].better(&list[least]) {
			least = right
		}
		if !list[least].better(&list[i]) {
			return
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}
