package queue

import (
	"runtime"
	"testing"

	"github.com/roost-batch/roost"
)

func BenchmarkSubmitArray(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		d := newDesk(b)
		d.submit(100_000, "")
	}
}

func BenchmarkTaskCycle(b *testing.B) {
	d := newDesk(b)
	d.submit(roost.MaxTasks, "")
	b.ReportAllocs()
	for b.Loop() {
		a := d.start()
		d.end(a, Exit{})
		d.log = d.log[:0]
	}
}

// grown is how many bytes of memory f adds.
func grown(f func()) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// BenchmarkMemory tells what a task of a large array, and a job that was submitted by itself, keep in memory.
func BenchmarkMemory(b *testing.B) {
	const jobs = 20_000
	for b.Loop() {
		d := newDesk(b)
		b.ReportMetric(grown(func() { d.submit(roost.MaxTasks, ""); d.log = nil })/roost.MaxTasks, "B/task")
		b.ReportMetric(grown(func() {
			for range jobs {
				d.submit(1, `JobName = "one"; Arguments = {"-n", "5"}`)
			}
			d.log = nil
		})/jobs, "B/job")
		runtime.KeepAlive(d)
	}
}

// BenchmarkFinished tells what a task that has succeeded keeps, in memory and in a snapshot.
func BenchmarkFinished(b *testing.B) {
	const tasks = 100_000
	for b.Loop() {
		d := newDesk(b)
		d.submit(tasks, "")
		b.ReportMetric(grown(func() {
			for i := range tasks {
				a := d.start()
				d.end(a, Exit{Wall: 1_000_000 * int64(i), User: 4_000_000, System: 1_000_000, MaxRSS: 1 << 20})
				d.log = d.log[:0]
			}
		})/tasks, "B/task")
		snapshot, _ := d.q.Snapshot(1)
		b.ReportMetric(float64(len(snapshot))/tasks, "disk-B/task")
		runtime.KeepAlive(d)
	}
}

// BenchmarkHuge holds, releases, removes and runs again a million idle tasks.
func BenchmarkHuge(b *testing.B) {
	const million = 1_000_000
	d := newDesk(b)
	whole := Target{Job: d.submit(million, "")}
	hold := func() ([]Event, error) { return d.q.Hold(d.now, alice, whole, "") }
	release := func() ([]Event, error) { return d.q.Release(d.now, alice, whole) }
	remove := func() ([]Event, error) { return d.q.Remove(d.now, alice, whole, "", false) }
	retry := func() ([]Event, error) { return d.q.Retry(d.now, alice, whole) }
	act := func(verb func() ([]Event, error)) {
		events, err := verb()
		if err != nil {
			b.Fatal(err)
		}
		d.apply(events...)
		d.log = d.log[:0]
	}
	kept := grown(func() { act(hold) }) / million
	if snapshot, _ := d.q.Snapshot(1); len(snapshot) > 1000 {
		b.Fatalf("a snapshot of a million alike tasks has %d bytes", len(snapshot))
	}
	act(release)
	for _, c := range []struct {
		name     string
		do, undo func() ([]Event, error)
	}{{"hold", hold, release}, {"remove", remove, retry}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				act(c.do)
				b.StopTimer()
				act(c.undo)
				b.StartTimer()
			}
			b.ReportMetric(kept, "B/task")
		})
	}
}
