package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// restartAll updates the service to the same once more. The queue decides after each
// event, as it does for news that come one by one.
func (d *updateRun) restartAll() {
	d.Helper()
	decide := func() {
		for events := d.queue.Followups(d.now); len(events) > 0; events = d.queue.Followups(d.now) {
			d.apply(events...)
		}
	}
	events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id}, JobRevision{}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	for decide(); d.job().update.State.IsActive(); decide() {
		vacates := d.queue.TakeVacates()
		for _, v := range vacates {
			d.end(v.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15})
			decide()
		}
		for d.job().counts[roost.Idle] > 0 {
			d.run()
			decide()
		}
		if len(vacates) == 0 {
			d.now = d.now.Add(time.Second)
		}
		d.takeEffects()
		d.queue.TakeReleasedRestarts()
		d.log = d.log[:0]
	}
}

// TestUpdateLooks checks that an update looks at each task a few times, however many
// there are. News of them come one by one.
func TestUpdateLooks(t *testing.T) {
	looks := map[int]int{}
	for _, tasks := range []int{50, 400} {
		d := newUpdateRun(t, tasks, `Update = [AtOnce = "10%"; MaxDown = "10%"; MinReady = 1]`)
		j := d.job()
		j.ownExtras().tallied = update.NewTally(func(i int) update.TaskFact {
			looks[tasks]++
			return revisionsOf(j).taskFact(i)
		})
		d.restartAll()
		looks[tasks] /= tasks
	}
	if looks[400] > 2*looks[50] {
		t.Errorf("a task is looked at so many times, by the number of tasks: %v", looks)
	}
}

// BenchmarkUpdateService updates services of several sizes. The time for a task is to be
// the same.
func BenchmarkUpdateService(b *testing.B) {
	for _, tasks := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			d := newUpdateRun(b, tasks, `Update = [AtOnce = "10%"; MaxDown = "10%"; MinReady = 1]`)
			b.ReportAllocs()
			for b.Loop() {
				d.restartAll()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tasks), "ns/task")
		})
	}
}
