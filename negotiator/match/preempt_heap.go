package match

// preemptionCandidate is a machine with the cost of making room there.
type preemptionCandidate struct {
	rank    float64
	cost    victimCost
	machine int32
}

// before orders candidates by rank, then by cost, then by machine name.
func (a *preemptionCandidate) before(b *preemptionCandidate) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.cost != b.cost:
		return a.cost.less(b.cost)
	}
	return a.machine < b.machine
}

// preemptionCandidateHeap is a heap of machines, the best first.
type preemptionCandidateHeap []preemptionCandidate

func (q preemptionCandidateHeap) heapify() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.siftDown(i)
	}
}

func (q *preemptionCandidateHeap) push(one preemptionCandidate) {
	*q = append(*q, one)
	list := *q
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !list[i].before(&list[parent]) {
			return
		}
		list[i], list[parent] = list[parent], list[i]
		i = parent
	}
}

func (q *preemptionCandidateHeap) pop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.siftDown(0)
}

// siftDown moves the candidate at i down to its place in the heap.
func (q preemptionCandidateHeap) siftDown(i int) {
	for {
		least := 2*i + 1
		if least >= len(q) {
			return
		}
		if right := least + 1; right < len(q) && q[right].before(&q[least]) {
			least = right
		}
		if !q[least].before(&q[i]) {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
