package queue

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// at moves the clock to a time on 1 June 2026 or later, in UTC.
func (d *testQueue) at(clock string) {
	d.Helper()
	t, err := time.Parse("2 15:04:05", clock)
	if err != nil {
		d.Fatal(err)
	}
	d.now = time.Date(2026, 6, t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// tick applies the runs that are due, and returns what was decided.
func (d *testQueue) tick() string {
	d.Helper()
	var list []string
	for events := d.queue.DueRuns(d.now, SubmitLimits{}); len(events) > 0; events = d.queue.DueRuns(d.now,
		SubmitLimits{}) {
		for _, e := range events {
			switch e.Type {
			case eventlog.Submitted:
				list = append(list, fmt.Sprintf("job %d%v", e.Job, e.Submission.Dependencies))
			case eventlog.RemovalRequested:
				list = append(list, fmt.Sprintf("remove %d", e.Job))
			default:
				list = append(list, fmt.Sprintf("%v %s", e.Type, time.Unix(e.Instant, 0).UTC().Format("2 15:04:05")))
			}
		}
		d.apply(events...)
	}
	return strings.Join(list, ", ")
}

func (d *testQueue) expectTick(clock, want string) {
	d.Helper()
	d.at(clock)
	if got := d.tick(); got != want {
		d.Errorf("at %s: got %q, want %q", clock, got, want)
	}
}

// scheduled submits a job with a schedule at midnight.
func (d *testQueue) scheduled(settings string) roost.JobID {
	d.Helper()
	d.at("1 00:00:00")
	return d.submit(2, `JobName = "nightly"; Environment = {"A=b"}; Schedule = [`+settings+`]`)
}

// TestSchedule checks the runs of a schedule that are made in time. Each is a job of its
// own, and the job with the schedule never starts.
func TestSchedule(t *testing.T) {
	d := newTestQueue(t)
	id := d.scheduled(`Cron = "0 * * * *"`)
	d.expectTick("1 00:59:59", "")
	if at := d.queue.NextDue(); at.UTC().Format("15:04") != "01:00" {
		t.Errorf("the next is due at %v", at)
	}
	d.expectTick("1 01:00:01", "job 2[], ticked 1 01:00:00")
	d.checkState(id, "blocked 2")
	run := roost.JobID{Seq: 2, Host: "h"}
	d.checkState(run, "idle 2")
	p, err := d.queue.Program(roost.AttemptID{Task: run.Task(0), Attempt: 1})
	if want := []string{"A=b", "ROOST_SCHEDULED_AT=2026-06-01T01:00:00Z"}; err != nil ||
		fmt.Sprint(p.Environment) != fmt.Sprint(want) {
		t.Errorf("the environment is %q, %v", p.Environment, err)
	}
	ad := parsedAd(d.queue.jobs[run.Seq])
	if by, _ := ad.Str(roost.AttrScheduledBy); by != "1.h" {
		t.Errorf("the run is of %q", by)
	}
	d.expectTick("1 02:00:00", "skipped 1 02:00:00") // the run has not ended
	for range 2 {
		d.end(d.start(), eventlog.AttemptExit{Cause: eventlog.CauseExited})
	}
	d.expectTick("1 03:00:00", "job 3[], ticked 1 03:00:00")
	if s, _ := d.queue.Status(id.Seq); s.Reason != "its next run is due at 2026-06-01 04:00:00 +0000" {
		t.Errorf("it waits as %q", s.Reason)
	}

	// While it is held no runs are made, and not afterwards either.
	target := TaskSelector{Job: id}
	events, err := d.queue.HoldTasks(d.now, alice, target, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectTick("1 05:30:00", "")
	if events, err = d.queue.ReleaseTasks(d.now, alice, target); err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectTick("1 05:30:01", "")
	d.expectTick("1 06:00:00", "skipped 1 06:00:00")
	if events, err = d.queue.RemoveTasks(d.now, alice, target, "", false); err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectTick("1 07:00:00", "")
	d.checkState(id, "removed 2")
	d.checkState(roost.JobID{Seq: 3, Host: "h"}, "idle 2")
}

// TestScheduleOverlap checks what is done about a run that has not ended.
func TestScheduleOverlap(t *testing.T) {
	d := newTestQueue(t)
	d.scheduled(`Cron = "0 * * * *"; Overlap = "replace"`)
	d.expectTick("1 01:00:00", "job 2[], ticked 1 01:00:00")
	d.expectTick("1 02:00:00", "remove 2, job 3[], ticked 1 02:00:00")
	a := d.start()
	d.expectTick("1 03:00:00", "remove 3, job 4[{afterany 3 0 false 0 0}], ticked 1 03:00:00")
	d.checkState(roost.JobID{Seq: 4, Host: "h"}, "blocked 2")
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	d.checkState(roost.JobID{Seq: 4, Host: "h"}, "idle 2")

	d = newTestQueue(t)
	d.scheduled(`Cron = "0 * * * *"; Overlap = "allow"`)
	d.expectTick("1 01:00:00", "job 2[], ticked 1 01:00:00")
	d.expectTick("1 02:00:00", "job 3[], ticked 1 02:00:00")
}

// TestScheduleMissed checks what becomes of instants at which nobody could make runs.
func TestScheduleMissed(t *testing.T) {
	for _, c := range []struct{ settings, clock, want string }{
		{`Cron = "*/10 * * * *"`, "1 00:35:00", "skipped 1 00:20:00, job 2[], ticked 1 00:30:00"},
		{`Cron = "*/10 * * * *"; Missed = "none"`, "1 00:35:00", "skipped 1 00:30:00"},
		{`Cron = "*/10 * * * *"; Missed = "none"`, "1 00:30:59", "skipped 1 00:20:00, job 2[], ticked 1 00:30:00"},
		{`Cron = "*/10 * * * *"; Missed = "all"`, "1 00:25:00",
			"job 2[], ticked 1 00:10:00, job 3[{afterany 2 0 false 0 0}], ticked 1 00:20:00"},
		{`Cron = "*/10 * * * *"; Missed = "all"; Overlap = "allow"`, "1 00:25:00",
			"job 2[], ticked 1 00:10:00, job 3[], ticked 1 00:20:00"},
		{`Cron = "0 1 * * *"`, "1 03:00:00", "skipped 1 02:00:00"}, // the deadline is an hour
		{`Cron = "0 1 * * *"; Deadline = 7200.0`, "1 03:00:00", "job 2[], ticked 1 01:00:00"},
		{`Cron = "*/10 * * * *"; Missed = "all"; Deadline = 600.0`, "1 12:05:00",
			"skipped 1 11:55:00, job 2[], ticked 1 12:00:00"},
	} {
		d := newTestQueue(t)
		d.scheduled(c.settings)
		d.at(c.clock)
		if got := d.tick(); got != c.want {
			t.Errorf("%s at %s:\n got %q\nwant %q", c.settings, c.clock, got, c.want)
		}
	}
	d := newTestQueue(t)
	d.scheduled(`Cron = "* * * * *"; Missed = "all"; Overlap = "allow"; Deadline = 604800.0`)
	d.at("7 00:00:00")
	if d.tick(); d.queue.Len() != 1+jobad.MaxMissed {
		t.Errorf("%d jobs after a week, want %d runs", d.queue.Len(), jobad.MaxMissed)
	}
}

// TestScheduleClock sets the clock: no instant has two runs, and a schedule goes on after
// a clock was far ahead.
func TestScheduleClock(t *testing.T) {
	d := newTestQueue(t)
	d.scheduled(`Cron = "*/10 * * * *"; Overlap = "allow"`)
	d.expectTick("1 00:10:00", "job 2[], ticked 1 00:10:00")
	d.expectTick("1 00:05:00", "") // back by five minutes
	d.expectTick("1 00:10:00", "")
	d.expectTick("1 00:20:00", "job 3[], ticked 1 00:20:00")
	d.expectTick("9 00:00:00", "skipped 8 23:50:00, job 4[], ticked 9 00:00:00") // a wrong year
	d.expectTick("1 00:21:00", "skipped 1 00:21:00")
	d.expectTick("1 00:30:00", "job 5[], ticked 1 00:30:00")
	d.expectTick("8 23:59:59", "skipped 8 23:40:00, job 6[], ticked 8 23:50:00")
	d.expectTick("9 00:00:30", "ticked 9 00:00:00") // that one has its run
}

// TestScheduleRefused checks which jobs with schedules are refused.
func TestScheduleRefused(t *testing.T) {
	d := newTestQueue(t)
	for _, c := range []struct{ src, want string }{
		{`Schedule = [Cron = "0 0 30 2 *"]`, "no such day ever comes"},
		{`Schedule = [Cron = "0 0 * * * *"]`, "has 5 fields"},
		{`Schedule = [Cron = "@daily"; Zone = "Mars/Base"]`, "no such zone"},
		{`Schedule = [Cron = "@daily"; Overlap = "maybe"]`, "overlap"},
		{`Schedule = [Cron = "@daily"; Missed = "some"]`, "missed"},
		{`Schedule = [Cron = "@daily"; Deadline = 1.0]`, "deadline"},
		{`Schedule = [Cron = "@daily"]; DeferralTime = 1700000200`, "start time"},
		{`Schedule = [Cron = "@daily"]; Interactive = true`, "terminal"},
		{`Schedule = "@daily"`, "nested ad"},
	} {
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{{Ad: parseTestAd(t, c.src), Count: 1}},
			SubmitLimits{})
		if rpc.KindOf(err) != roost.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.src, err)
		}
	}
}

// TestOneRunPerInstant checks that each instant which was decided to run has one run
// (S10). Schedules are random, clocks are set, leaders die with any part of what they
// decided in the log, and runs leave for the history.
func TestOneRunPerInstant(t *testing.T) {
	for seed := range uint64(40) {
		if problem := playSchedule(t, seed); problem != "" {
			t.Fatalf("seed %d: %s", seed, problem)
		}
	}
}

// playSchedule plays one schedule, and returns what went wrong.
func playSchedule(t *testing.T, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 10))
	d := newTestQueue(t)
	past, made := map[string][]roost.JobID{}, map[string]int{}
	limits := SubmitLimits{JobsByKey: func(key string) []roost.JobID { return past[key] }}
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	id := d.scheduled(fmt.Sprintf(`Cron = "*/%s * * * *"; Overlap = %q; Missed = %q`, pick("1", "5", "7", "30"),
		pick("skip", "allow", "allow", "replace"), pick("last", "all", "none")))
	ticked := map[string]bool{}
	for range 100 {
		step := time.Duration(rng.IntN(240)) * time.Second
		if rng.IntN(15) == 0 {
			step = time.Duration(rng.IntN(8*3600)-4*3600) * time.Second
		}
		d.now = d.now.Add(step)
		limits.LastSeq = d.queue.lastSeq
		events := d.queue.DueRuns(d.now, limits)
		isLost := rng.IntN(12) == 0
		if isLost && len(events) > 0 { // the leader dies while it writes
			events = events[:rng.IntN(len(events)+1)]
		}
		for _, e := range events {
			switch e.Type {
			case eventlog.Submitted:
				made[e.Submission.Key]++
			case eventlog.Ticked:
				ticked[runKey(id.Seq, e.Instant)] = true
			}
		}
		d.apply(events...)
		if isLost {
			again := New("h")
			for _, e := range d.log {
				again.Apply(e)
			}
			d.queue = again
		}
		if rng.IntN(2) == 0 {
			d.purgeOldestRun(id, past)
		}
	}
	for key, n := range made {
		if n != 1 {
			return fmt.Sprintf("%s has %d runs", key, n)
		}
	}
	for key := range ticked {
		if made[key] != 1 {
			return key + " is said to have a run, and has none"
		}
	}
	if len(made) == 0 {
		return "no runs at all"
	}
	return ""
}

// purgeOldestRun removes the oldest run, and puts it into the history.
func (d *testQueue) purgeOldestRun(by roost.JobID, past map[string][]roost.JobID) {
	open := d.queue.openRuns(by.Seq)
	if len(open) == 0 {
		return
	}
	id := open[0].id("h")
	events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id}, "", false)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	for events := d.queue.Followups(d.now); len(events) > 0; events = d.queue.Followups(d.now) {
		d.apply(events...)
	}
	key := open[0].texts.key()
	if e, ok := d.queue.PurgeJob(d.now, id.Seq); ok {
		d.apply(e)
		past[key] = []roost.JobID{id}
	}
}
