package queue

import (
	"runtime"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

func BenchmarkSubmitArray(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		d := newTestQueue(b)
		d.submit(100_000, "")
	}
}

func BenchmarkTaskCycle(b *testing.B) {
	d := newTestQueue(b)
	d.submit(roost.MaxTasks, "")
	b.ReportAllocs()
	for b.Loop() {
		a := d.start()
		d.end(a, eventlog.AttemptExit{})
		d.log = d.log[:0]
	}
}

// memoryGrowth is how many bytes of memory f adds.
func memoryGrowth(f func()) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// BenchmarkMemory tells what a task of a large array, and a job that was submitted by
// itself, keep in memory.
func BenchmarkMemory(b *testing.B) {
	const jobs = 20_000
	for b.Loop() {
		d := newTestQueue(b)
		b.ReportMetric(memoryGrowth(func() { d.submit(roost.MaxTasks, ""); d.log = nil })/roost.MaxTasks, "B/task")
		b.ReportMetric(memoryGrowth(func() {
			for range jobs {
				d.submit(1, `JobName = "one"; Arguments = {"-n", "5"}`)
			}
			d.log = nil
		})/jobs, "B/job")
		runtime.KeepAlive(d)
	}
}

// BenchmarkFinished tells what a task that has succeeded keeps, in memory and in a
// snapshot.
func BenchmarkFinished(b *testing.B) {
	const tasks = 100_000
	for b.Loop() {
		d := newTestQueue(b)
		d.submit(tasks, "")
		b.ReportMetric(memoryGrowth(func() {
			for i := range tasks {
				a := d.start()
				d.end(a, eventlog.AttemptExit{Wall: 1_000_000 * int64(i), User: 4_000_000, System: 1_000_000,
					MaxRSS: 1 << 20})
				d.log = d.log[:0]
			}
		})/tasks, "B/task")
		snapshot, _ := d.queue.Snapshot(1)
		b.ReportMetric(float64(len(snapshot))/tasks, "disk-B/task")
		runtime.KeepAlive(d)
	}
}

// BenchmarkHuge holds, releases, removes and runs again a million idle tasks.
func BenchmarkHuge(b *testing.B) {
	const million = 1_000_000
	d := newTestQueue(b)
	whole := TaskSelector{Job: d.submit(million, "")}
	hold := func() ([]eventlog.JobEvent, error) { return d.queue.HoldTasks(d.now, alice, whole, "") }
	release := func() ([]eventlog.JobEvent, error) { return d.queue.ReleaseTasks(d.now, alice, whole) }
	remove := func() ([]eventlog.JobEvent, error) { return d.queue.RemoveTasks(d.now, alice, whole, "", false) }
	retry := func() ([]eventlog.JobEvent, error) { return d.queue.RetryTasks(d.now, alice, whole) }
	act := func(verb func() ([]eventlog.JobEvent, error)) {
		events, err := verb()
		if err != nil {
			b.Fatal(err)
		}
		d.apply(events...)
		d.log = d.log[:0]
	}
	retained := memoryGrowth(func() { act(hold) }) / million
	if snapshot, _ := d.queue.Snapshot(1); len(snapshot) > 1000 {
		b.Fatalf("a snapshot of a million alike tasks has %d bytes", len(snapshot))
	}
	act(release)
	for _, c := range []struct {
		name     string
		do, undo func() ([]eventlog.JobEvent, error)
	}{{"hold", hold, release}, {"remove", remove, retry}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				act(c.do)
				b.StopTimer()
				act(c.undo)
				b.StartTimer()
			}
			b.ReportMetric(retained, "B/task")
		})
	}
}
