package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/schedd/queue"
)

// BenchmarkAppend measures the time for a batch, by the number of its events.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			j, _ := open(b, b.TempDir())
			measureAppends(b, j, n)
		})
	}
}

// measureAppends appends batches of n events.
func measureAppends(b *testing.B, j *Journal, n int) {
	events := make([]queue.JobEvent, n)
	for i := range events {
		events[i] = queue.JobEvent{Type: queue.Started, Time: epoch.UnixNano(), Job: 1, Index: i, Attempt: 1}
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := j.Append(events); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// BenchmarkAppendBesideCheckpoint measures the time for a batch of one event while
// another goroutine writes checkpoints. Each checkpoint has 1,000 jobs.
func BenchmarkAppendBesideCheckpoint(b *testing.B) {
	j, q := open(b, b.TempDir())
	s := newRandomWorkload(1, q)
	for range 1000 {
		s.apply(s.submit(b, 1))
	}
	c := fullCheckpoint(q)
	if err := j.StartCheckpoint(c); err != nil {
		b.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	written := 0
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := j.WriteCheckpoint(c); err != nil {
				done <- err
				return
			}
			written++
		}
	}()
	measureAppends(b, j, 1)
	close(stop)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(written), "checkpoints")
}

// BenchmarkEvents measures the events of 100 jobs, of which the log has some among those
// of 10,000 other jobs.
func BenchmarkEvents(b *testing.B) {
	j, q := open(b, b.TempDir())
	s := newRandomWorkload(1, q)
	var seqs []uint64
	for i := range 10_100 {
		events := s.submit(b, 1)
		s.apply(events)
		if i%101 == 0 {
			seqs = append(seqs, q.LastSeq())
		}
		if err := j.Append(events); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		all, err := j.Events(seqs...)
		if err != nil || len(all[seqs[0]]) != 1 {
			b.Fatal(all[seqs[0]], err)
		}
	}
	b.ReportMetric(float64(j.Size())/1e6, "log-MB")
}

// BenchmarkCheckpoint measures a checkpoint of a job that has run many tasks.
func BenchmarkCheckpoint(b *testing.B) {
	const tasks = 100_000
	j, q := open(b, b.TempDir())
	s := newRandomWorkload(1, q)
	s.apply(s.submit(b, tasks))
	job := roost.JobID{Seq: 1, Host: host}
	for i := range tasks {
		e, a, err := q.AssignNext(epoch, job.Task(i), fmt.Sprintf("node%d", i%200), "unix:/n", uint64(i))
		if err != nil {
			b.Fatal(err)
		}
		s.apply([]queue.JobEvent{e})
		e, err = q.RecordEnded(epoch, a, &queue.AttemptExit{Wall: int64(i), MaxRSS: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		s.apply([]queue.JobEvent{e})
	}
	q.TakeUnsaved()
	size := 0
	for b.Loop() {
		snapshot, _ := q.Snapshot(1)
		size = len(snapshot)
		if err := checkpoint(j, &QueueCheckpoint{Jobs: map[uint64][]byte{1: snapshot}, LastSeq: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}

// BenchmarkCheckpointOfJobs measures a checkpoint of as many new jobs as a user of a
// sweep submits at once.
func BenchmarkCheckpointOfJobs(b *testing.B) {
	const jobs = 20_000
	j, _ := open(b, b.TempDir())
	snapshot, last := make([]byte, 400), uint64(0)
	for b.Loop() {
		c := &QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: last + jobs}
		for ; last < c.LastSeq; last++ {
			c.Jobs[last+1] = snapshot
		}
		if err := checkpoint(j, c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckpointOfArrays measures a checkpoint of a full log. Its events are of two
// arrays that ran at the same time, and of one before them that has left the queue.
func BenchmarkCheckpointOfArrays(b *testing.B) {
	const tasks = 5000
	j, q := open(b, b.TempDir())
	s := newRandomWorkload(1, q)
	run := func(jobs ...uint64) {
		var batch []queue.JobEvent
		for i := range tasks {
			for _, seq := range jobs {
				task := roost.JobID{Seq: seq, Host: host}.Task(i)
				assigned, a, err := q.AssignNext(epoch, task, "node", "unix:/n", seq)
				if err != nil {
					b.Fatal(err)
				}
				s.apply([]queue.JobEvent{assigned})
				ended, err := q.RecordEnded(epoch, a, &queue.AttemptExit{})
				if err != nil {
					b.Fatal(err)
				}
				s.apply([]queue.JobEvent{ended})
				batch = append(batch, assigned, ended)
			}
			if len(batch) >= 100 || i == tasks-1 {
				if err := j.Append(batch); err != nil {
					b.Fatal(err)
				}
				batch = batch[:0]
			}
		}
	}
	for b.Loop() {
		b.StopTimer()
		last := q.LastSeq()
		for range 3 {
			s.apply(s.submit(b, tasks))
		}
		run(last + 1)
		purged, ok := q.PurgeJob(epoch, last+1)
		if !ok {
			b.Fatal("the job is not final")
		}
		s.apply([]queue.JobEvent{purged})
		run(last+2, last+3)
		c := fullCheckpoint(q)
		b.StartTimer()
		if err := checkpoint(j, c); err != nil {
			b.Fatal(err)
		}
	}
}

// damagedLog writes a log with that number of jobs. The first of them began to run since
// the checkpoint, and their assignments are damaged.
func damagedLog(t testing.TB, jobs, damaged int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j, q := open(t, dir)
	defer j.Close()
	s := newRandomWorkload(1, q)
	for range jobs {
		s.apply(s.submit(t, 1))
	}
	if err := checkpoint(j, fullCheckpoint(q)); err != nil {
		t.Fatal(err)
	}
	for first := 1; first <= damaged; first += 100 {
		var batch []queue.JobEvent
		for seq := first; seq < min(first+100, damaged+1); seq++ {
			task := roost.JobID{Seq: uint64(seq), Host: host}.Task(0)
			assigned, a, err := q.AssignNext(epoch, task, fmt.Sprint("node-of-", seq), "unix:/n", uint64(seq))
			if err != nil {
				t.Fatal(err)
			}
			s.apply([]queue.JobEvent{assigned})
			started, _ := q.RecordStarted(epoch, a)
			s.apply([]queue.JobEvent{started})
			batch = append(batch, assigned, started)
		}
		if err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flipWordBits(t, newestSegment(t, dir), "node-of-", 5)
	return dir
}

// sweepSpec is what qsub makes of job i of a parameter sweep of several users.
func sweepSpec(tb testing.TB, i int) (queue.CallerIdentity, []queue.SubmitSpec) {
	tb.Helper()
	user := fmt.Sprintf("user%d", i%8)
	home := "/home/" + user
	script := fmt.Sprintf("#!/bin/sh\n#PBS -j oe\n./simulate --seed %d --out result.%d\n", i, i)
	r, err := qsub.ParseQsub([]string{"-N", fmt.Sprintf("sweep%d", i), "-l", "select=1:ncpus=1:mem=1gb"},
		qsub.QsubCaller{
			Dir: home + "/sweep", Home: home, User: user, Group: "users", Host: "submit.example.org", Now: epoch,
			Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin:" + home + "/bin", "LANG=C.UTF-8", "HOME=" + home,
				"USER=" + user, "LOGNAME=" + user, "SHELL=/bin/bash", "MAIL=/var/mail/" + user},
			Stdin:    func() ([]byte, error) { return []byte(script), nil },
			LookPath: func(p string) (string, error) { return p, nil }, IsDir: func(string) bool { return false },
		})
	if err != nil {
		tb.Fatal(err)
	}
	return queue.CallerIdentity{User: user, UID: uint32(2000 + i%8), GID: 100},
		[]queue.SubmitSpec{{Ad: r.Job.Ad, Count: r.Job.Count}}
}

// BenchmarkOpen measures how long a schedd takes to read its log, by the number of queued
// jobs of one task.
func BenchmarkOpen(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			dir := b.TempDir()
			j, q := open(b, dir)
			limits := queue.SubmitLimits{NewSecret: func() []byte { return make([]byte, queue.SecretSize) }}
			for i := 0; i < jobs; {
				var batch []queue.JobEvent
				for range 1000 {
					who, spec := sweepSpec(b, i)
					events, _, _, err := q.SubmitJobs(epoch, who, fmt.Sprint("submission-", i), spec, limits)
					if err != nil {
						b.Fatal(err)
					}
					q.Apply(events[0])
					batch, i = append(batch, events...), i+1
				}
				if err := j.Append(batch); err != nil {
					b.Fatal(err)
				}
				if err := checkpoint(j, fullCheckpoint(q)); err != nil {
					b.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				again, q, err := Open(dir, host)
				if err != nil || q.Len() != jobs {
					b.Fatal(q.Len(), err)
				}
				again.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*jobs), "µs/job")
		})
	}
}

// BenchmarkRepair measures a repair, by the number of jobs and of those that lack an
// event.
func BenchmarkRepair(b *testing.B) {
	for _, n := range []struct{ jobs, damaged int }{{10_000, 10}, {10_000, 100}, {100_000, 10}, {100_000, 1000}} {
		b.Run(fmt.Sprintf("jobs=%d/damaged=%d", n.jobs, n.damaged), func(b *testing.B) {
			dir := damagedLog(b, n.jobs, n.damaged)
			for b.Loop() {
				report, err := Repair(dir, host, epoch, true)
				if err != nil || report == nil || len(report.Actions) < n.damaged {
					b.Fatal(report, err)
				}
			}
		})
	}
}
