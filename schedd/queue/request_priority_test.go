package queue

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestTopPriority counts the tasks with the highest priority of random requests. While
// there are few classes all of them count, and never more.
func TestTopPriority(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var h classHeap
		top, all := -1, 0
		for i := range rng.IntN(200) {
			j := &job{orderRank: uint64(i), spec: &jobad.SharedSpec{JobSpec: jobad.JobSpec{Priority: rng.IntN(3)}}}
			c := &taskClass{job: j, count: 1 + rng.IntN(5)}
			switch p := j.spec.Priority; {
			case p > top:
				top, all = p, c.count
			case p == top:
				all += c.count
			}
			heap.Push(&h, c)
		}
		got, few := h.atTopPriority(), len(h) <= maxPriorityClasses
		if got > all || few && got != all || len(h) > 0 && got == 0 {
			t.Fatalf("seed %d: %d of %d tasks in %d classes", seed, got, all, len(h))
		}
	}
}
