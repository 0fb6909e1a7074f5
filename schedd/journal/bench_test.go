package journal

import (
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// What the disk takes for a batch, by how many events share it.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			j, _ := open(b, b.TempDir())
			events := make([]queue.Event, n)
			for i := range events {
				events[i] = queue.Event{What: queue.Started, Time: epoch.UnixNano(), Job: 1, Index: i, Attempt: 1}
			}
			for b.Loop() {
				if err := j.Append(events, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// A checkpoint of a job that has many tasks and has run them all.
func BenchmarkCheckpoint(b *testing.B) {
	const tasks = 100_000
	j, q := open(b, b.TempDir())
	s := newStory(1, q)
	s.apply(s.submit(b, tasks))
	job := roost.JobID{Seq: 1, Host: host}
	for i := range tasks {
		e, a, err := q.Assign(epoch, job.Task(i), fmt.Sprintf("node%d", i%200), "unix:/n", uint64(i))
		if err != nil {
			b.Fatal(err)
		}
		s.apply([]queue.Event{e})
		e, err = q.End(epoch, a, &queue.Exit{Wall: int64(i), MaxRSS: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		s.apply([]queue.Event{e})
	}
	q.Unsaved()
	size := 0
	for b.Loop() {
		snapshot, _ := q.Snapshot(1)
		size = len(snapshot)
		if err := j.Append(nil, &Checkpoint{Jobs: map[uint64][]byte{1: snapshot}, LastSeq: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}
