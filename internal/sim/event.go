package sim

import (
	"cmp"
	"container/heap"
)

// kind is a kind of event. Of events at the same instant the lower kinds come first, and of one kind those that were planned first: so the published
// schedules do.
type kind uint8

const (
	outlived kind = iota // a task runs for longer than it was expected to
	submission
	end
	start
)

type event struct {
	at    int64
	kind  kind
	order int64
	task  *task
}

// events is a heap.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	a, b := &e[i], &e[k]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.order, b.order)) < 0
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (r *replay) plan(e event) {
	r.planned++
	e.order = r.planned
	heap.Push(&r.events, e)
}
