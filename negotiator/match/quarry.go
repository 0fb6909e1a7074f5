package match

// quarry is a machine, and what it costs to make room there.
type quarry struct {
	rank float64
	cost cost
	at   int32
}

// before orders by rank, by whom it hurts, then by name: machines come in the order of their names.
func (a *quarry) before(b *quarry) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.cost != b.cost:
		return a.cost.less(b.cost)
	}
	return a.at < b.at
}

// quarries is a heap, the best first.
type quarries []quarry

func (q quarries) make() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *quarries) push(one quarry) {
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

func (q *quarries) pop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.down(0)
}

// down lets what stands at i sink to where it belongs.
func (q quarries) down(i int) {
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
