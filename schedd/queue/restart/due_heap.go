package restart

import (
	"cmp"
	"container/heap"
)

// DueTask is a task that is to be started again at some time, in unix nanoseconds.
type DueTask struct {
	At    int64
	Job   uint64
	Index int
}

// DueHeap has the tasks that wait for their restart, the next one first. What has been
// put in stays until its time, so its user asks whether the task still waits.
type DueHeap struct{ tasks dueTasks }

// Add puts a task in.
func (h *DueHeap) Add(t DueTask) { heap.Push(&h.tasks, t) }

// First returns the task that is due first.
func (h *DueHeap) First() (t DueTask, ok bool) {
	if len(h.tasks) == 0 {
		return DueTask{}, false
	}
	return h.tasks[0], true
}

// RemoveFirst takes that out.
func (h *DueHeap) RemoveFirst() { heap.Pop(&h.tasks) }

type dueTasks []DueTask

func (d dueTasks) Len() int { return len(d) }

func (d dueTasks) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(d[i].At, d[k].At), cmp.Compare(d[i].Job, d[k].Job),
		cmp.Compare(d[i].Index, d[k].Index)) < 0
}

func (d dueTasks) Swap(i, k int) { d[i], d[k] = d[k], d[i] }

// Push implements heap.Interface.
func (d *dueTasks) Push(x any) { *d = append(*d, x.(DueTask)) }

// Pop implements heap.Interface.
func (d *dueTasks) Pop() any {
	last := len(*d) - 1
	t := (*d)[last]
	*d = (*d)[:last]
	return t
}
