package queue

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
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

// sweepAd is the ad that qsub makes of job i of a parameter sweep of several users. Its
// name, its script and its arguments are its own; the rest it shares with other jobs of
// its user.
func sweepAd(tb testing.TB, i int) *classad.Ad {
	tb.Helper()
	user, name := fmt.Sprintf("user%d", i%8), fmt.Sprintf("sweep%d", i)
	ad, err := classad.Parse(fmt.Sprintf(`[
		MyType = "Job"; JobName = "%[2]s"; TaskCount = 1; Iwd = "/home/%[1]s";
		Script = "#!/bin/sh\n#PBS -j oe\ncd $PBS_O_WORKDIR\n./simulate --seed %[3]d --out result.%[3]d\n";
		Out = "/home/%[1]s/sweep/%[2]s.o$(JobSeq)"; JoinOutput = true; KeepEmptyFiles = true; Transfer = "auto";
		RequestCpus = 1; RequestMemory = 1024; RequestDisk = 0; Walltime = 0; RequestGpus = 0; Processes = 1;
		Band = "batch"; JobPrio = 0; Rerunnable = true; MaxRetries = 0; JobLeaseDuration = 2400;
		Environment = { "ENVIRONMENT=BATCH", "HOME=/home/%[1]s", "LOGNAME=%[1]s", "NCPUS=1", "OMP_NUM_THREADS=1",
			"PATH=/usr/local/bin:/usr/bin:/bin:/home/%[1]s/bin", "PBS_ENVIRONMENT=PBS_BATCH",
			"PBS_JOBDIR=/home/%[1]s", "PBS_JOBID=$(JobId)", "PBS_JOBNAME=%[2]s", "PBS_NNODES=1", "PBS_NODENUM=0",
			"PBS_NP=1", "PBS_NUM_NODES=1", "PBS_NUM_PPN=1", "PBS_O_HOME=/home/%[1]s",
			"PBS_O_HOST=submit.example.org", "PBS_O_LANG=C.UTF-8", "PBS_O_LOGNAME=%[1]s",
			"PBS_O_MAIL=/var/mail/%[1]s", "PBS_O_PATH=/usr/local/bin:/usr/bin:/bin:/home/%[1]s/bin",
			"PBS_O_QUEUE=batch", "PBS_O_SHELL=/bin/bash", "PBS_O_SYSTEM=Linux", "PBS_O_WORKDIR=/home/%[1]s/sweep",
			"PBS_QUEUE=batch", "PBS_SERVER=$(JobHost)", "PBS_TASKNUM=1", "PBS_VERSION=Roost-0.1.0",
			"PBS_VNODENUM=0", "SHELL=/bin/bash", "USER=%[1]s" };
		PBS = [ Resource_List = [ select = "1:ncpus=1:mem=1gb"; place = "free"; nodect = "1" ]; Join_Path = "oe";
			project = "_pbs_project_default"; Keep_Files = "n"; Mail_Points = "a"; egroup = "users" ];
		SubmitArguments = { "-N", "%[2]s", "-l", "select=1:ncpus=1:mem=1gb" } ]`, user, name, i))
	if err != nil {
		tb.Fatal(err)
	}
	return ad
}

// submitSweep submits that many jobs, each by itself, as qsub does.
func (d *testQueue) submitSweep(jobs int) {
	d.Helper()
	limits := SubmitLimits{NewSecret: func() []byte {
		secret := make([]byte, SecretSize)
		rand.Read(secret)
		return secret
	}}
	for i := range jobs {
		user := fmt.Sprintf("user%d", i%8)
		who := CallerIdentity{User: user, UID: uint32(2000 + i%8), GID: 100}
		events, _, _, err := d.queue.SubmitJobs(d.now, who, fmt.Sprintf("submission-%d", i),
			[]jobad.SubmitSpec{{Ad: sweepAd(d, i), Count: 1}}, limits)
		if err != nil {
			d.Fatal(err)
		}
		d.apply(events...)
		d.log = d.log[:0]
	}
	d.log = nil
}

// BenchmarkQueuedJob tells what a single job keeps in memory that qsub submitted, when
// what its submission set off is done.
func BenchmarkQueuedJob(b *testing.B) {
	const jobs = 50_000
	for b.Loop() {
		d := newTestQueue(b)
		b.ReportMetric(memoryGrowth(func() {
			d.submitSweep(jobs)
			d.takeEffects()
		})/jobs, "B/job")
		runtime.KeepAlive(d)
	}
}

// takeEffects drains what the queue has for others to do.
func (d *testQueue) takeEffects() {
	d.queue.TakeDirtyRequests()
	d.queue.TakeChanged()
	d.queue.TakeChangedDemands()
	d.queue.TakeUnsaved()
	d.queue.TakeFinal()
}

// BenchmarkRestore measures how long a queue takes to come back from its snapshots.
func BenchmarkRestore(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			d := newTestQueue(b)
			d.submitSweep(jobs)
			var snapshots [][]byte
			for seq := range uint64(jobs) {
				s, ok := d.queue.Snapshot(seq + 1)
				if !ok {
					b.Fatal("no snapshot of job", seq+1)
				}
				snapshots = append(snapshots, s)
			}
			for b.Loop() {
				q := New("h")
				for _, s := range snapshots {
					if err := q.RestoreSnapshot(s); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*jobs), "µs/job")
		})
	}
}
