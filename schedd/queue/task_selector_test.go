package queue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestNextTask goes from one listed task to the next through random targets and states.
// It has to find those that EachTaskIn lists, and to look at no task between them.
func TestNextTask(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 200 {
		d, tasks := newTestQueue(t), 2+rng.IntN(60)
		whole := TaskSelector{Job: d.submit(tasks, "")}
		for range rng.IntN(4) {
			first := rng.IntN(tasks)
			part := whole.Intersect(first, min(first+rng.IntN(3), tasks-1))
			if rng.IntN(2) == 0 {
				events, _ := d.queue.HoldTasks(d.now, alice, part, "")
				d.apply(events...)
			} else {
				events, _ := d.queue.RemoveTasks(d.now, alice, part, "", false)
				d.apply(events...)
			}
		}
		j := d.queue.jobs[whole.Job.Seq]
		stopped := slices.IndexFunc(j.state, func(s roost.TaskState) bool {
			return s == roost.Held || s == roost.Removed
		})
		if got := indexOfState(j.state, roost.Removed, roost.Held); got != stopped {
			t.Errorf("round %d: the first task that does not run is %d, want %d", round, got, stopped)
		}
		target := whole
		for from := 0; rng.IntN(3) > 0 && from < tasks; from += 2 {
			r := eventlog.IndexRange{First: from + rng.IntN(5)}
			r.Last = r.First + rng.IntN(9)
			target.Ranges, from = append(target.Ranges, r), r.Last
		}
		states := [][]roost.TaskState{nil, {roost.Held}, {roost.Removed, roost.Held}, {roost.Idle},
			{roost.Running}}[rng.IntN(5)]
		list := func(t TaskSelector) (all []int) {
			d.queue.EachTaskIn(t, states, false, func(s JobStatus) bool {
				all = append(all, s.Task.Index)
				return true
			})
			return all
		}
		var got []int
		looks := 0
		for next, ok := d.queue.NextTaskIn(target, 0, states, false); ok; looks++ {
			got = append(got, list(target.Intersect(next, next))...)
			next, ok = d.queue.NextTaskIn(target, next+1, states, false)
		}
		want := list(target)
		if !slices.Equal(got, want) {
			t.Errorf("round %d: %v in %v: got %v, want %v", round, target, states, got, want)
		}
		// without ranges, each look finds a task
		if len(target.Ranges) == 0 && looks != len(want) {
			t.Errorf("round %d: %d looks found %d tasks", round, looks, len(want))
		}
	}
}
