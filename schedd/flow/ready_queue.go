package flow

import (
	"container/heap"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// readyNode is a node with a part that may begin.
type readyNode struct {
	node     graph.NodeID
	sequence uint32 // in the order of becoming ready
	depth    uint32 // 0 unless the deepest node begins first
	priority int16
}

// readyQueue has nodes with a part that may begin, in a heap. The first one has the
// highest priority, the greatest depth if that counts, and of those waits longest. An
// entry of a node whose state is another one by now is dropped when it is
// seen.
type readyQueue []readyNode

// Len implements heap.Interface, as do the next four methods.
func (q readyQueue) Len() int { return len(q) }

// Less orders nodes.
func (q readyQueue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.depth != b.depth:
		return a.depth > b.depth
	}
	return a.sequence < b.sequence
}

// Swap swaps two nodes.
func (q readyQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a node at the end.
func (q *readyQueue) Push(x any) { *q = append(*q, x.(readyNode)) }

// Pop removes the node at the end.
func (q *readyQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// addReady puts a node into the queue of its state.
func (r *Run) addReady(id graph.NodeID) {
	n := r.definition.Graph.Node(id)
	r.sequence++
	e := readyNode{node: id, sequence: r.sequence, priority: n.Priority}
	if r.definition.DepthFirst {
		e.depth = n.Depth
	}
	heap.Push(r.queueOf(r.states[id]), e)
}

// queueOf returns the queue of the nodes in a state.
func (r *Run) queueOf(s NodeState) *readyQueue {
	switch s {
	case PreReady:
		return &r.preQueue
	case JobReady:
		return &r.jobQueue
	}
	return &r.postQueue
}

// first returns the first node of a queue that is in a state.
func (r *Run) first(q *readyQueue, s NodeState) (id graph.NodeID, ok bool) {
	for q.Len() > 0 {
		if e := (*q)[0]; r.states[e.node] == s {
			return e.node, true
		}
		heap.Pop(q)
	}
	return 0, false
}

// firstJob returns the first node whose job may be submitted. Nodes of a category that
// has as many jobs as it may wait aside until it has fewer.
func (r *Run) firstJob() (id graph.NodeID, ok bool) {
	for {
		if id, ok = r.first(&r.jobQueue, JobReady); !ok {
			return 0, false
		}
		category := r.definition.Graph.Node(id).Category
		limit := r.categoryLimit(category)
		if limit < 0 || r.categoryJobs[category] < limit || !r.isCounted(id) {
			return id, true
		}
		aside := r.aside[category]
		if aside == nil {
			aside = &readyQueue{}
			r.aside[category] = aside
		}
		heap.Push(aside, heap.Pop(&r.jobQueue))
	}
}

// unblockCategory lets the first node go on that waits for a category.
func (r *Run) unblockCategory(category uint16) {
	if aside := r.aside[category]; aside != nil && aside.Len() > 0 {
		heap.Push(&r.jobQueue, heap.Pop(aside))
	}
}

// unblockAll has all nodes that wait for a category looked at again.
func (r *Run) unblockAll() {
	for _, aside := range r.aside {
		for aside.Len() > 0 {
			heap.Push(&r.jobQueue, heap.Pop(aside))
		}
	}
}

// categoryLimit returns how many jobs of a category may be in the queue; -1: any number.
func (r *Run) categoryLimit(category uint16) int {
	limits := r.definition.Categories
	if r.limits.Categories != nil {
		limits = r.limits.Categories
	}
	if int(category) < len(limits) && category != 0 {
		return limits[category]
	}
	return -1
}
