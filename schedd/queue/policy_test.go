package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// decide has the conditions of all jobs looked at after some time.
func (d *testQueue) decide(after time.Duration) {
	d.Helper()
	d.now = d.now.Add(after)
	d.apply(d.queue.DecidePolicies(d.now)...)
}

// TestPeriodicConditions looks at conditions of idle, running and held tasks.
func TestPeriodicConditions(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, `PeriodicHold = JobStatus == 2 && time() - EnteredCurrentStatus > 100 && NumHolds < 1;
		PeriodicHoldReason = "too long"; PeriodicRelease = time() - EnteredCurrentStatus > 60;
		PeriodicRemove = JobStatus == 1 && time() - QDate > 1000`)
	d.decide(time.Minute)
	d.checkState(id, "idle 1")
	a := d.start()
	d.decide(time.Minute)
	d.checkState(id, "starting 1")
	d.decide(time.Minute)
	if v := d.queue.TakeVacates(); len(v) != 1 || v[0].Reason != "too long" {
		t.Fatalf("got %v, want the attempt vacated", v)
	}
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15, Wall: int64(2 * time.Minute)})
	d.checkState(id, "held 1")
	d.decide(time.Minute)
	d.checkState(id, "held 1")
	d.decide(time.Minute)
	d.checkState(id, "idle 1")
	d.decide(time.Hour)
	d.checkState(id, "removed 1")
	if s, _ := d.queue.Status(id.Seq); !strings.HasPrefix(s.Reason, "periodic_remove: JobStatus == 1") {
		t.Errorf("the reason is %q", s.Reason)
	}
}

// TestUserHoldStays checks that a condition does not release what a user holds.
func TestUserHoldStays(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "PeriodicRelease = true")
	for _, who := range []CallerIdentity{alice, root} {
		events, err := d.queue.HoldTasks(d.now, who, TaskSelector{Job: id}, "")
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
		d.decide(time.Minute)
		d.checkState(id, "held 2")
		release, err := d.queue.ReleaseTasks(d.now, root, TaskSelector{Job: id})
		if err != nil {
			t.Fatal(err)
		}
		d.apply(release...)
	}
}

// TestExitConditions ends tasks whose users say what then becomes of them.
func TestExitConditions(t *testing.T) {
	for _, c := range []struct {
		ad    string
		exits []eventlog.AttemptExit
		want  string
	}{
		{"OnExitRemove = ExitCode == 0", []eventlog.AttemptExit{{Code: 1}, {Code: 2}, {}}, "completed 1"},
		{"OnExitRemove = ExitCode == 0", []eventlog.AttemptExit{{Code: 1}}, "idle 1"},
		{"OnExitRemove = ExitCode == 0", []eventlog.AttemptExit{{Signal: 9}}, "held 1"}, // ExitCode is undefined
		{"OnExitRemove = ExitCode =?= 0", []eventlog.AttemptExit{{Signal: 9}}, "idle 1"},
		{"OnExitRemove = NumJobCompletions > 2", []eventlog.AttemptExit{{}, {Code: 1}, {Code: 3}},
			"completed 1 failed 1"},
		{"MaxRetries = 9; OnExitRemove = ExitCode == 7", []eventlog.AttemptExit{{Code: 7}}, "completed 1 failed 1"},
		{"OnExitHold = ExitBySignal", []eventlog.AttemptExit{{Signal: 11}}, "held 1"},
		{"OnExitHold = ExitBySignal", []eventlog.AttemptExit{{Code: 1}}, "completed 1 failed 1"},
		{"OnExitHold = MemoryUsage > 100", []eventlog.AttemptExit{{Used: eventlog.ResourceUsage{Peak: 200 << 20}}},
			"held 1"},
		{`Labels = [Most = "3"]; OnExitRemove = NumJobCompletions >= Most`,
			[]eventlog.AttemptExit{{}, {}, {}}, "completed 1"},
		// what the program did not do itself is not its exit
		{"OnExitRemove = false", []eventlog.AttemptExit{{Cause: eventlog.CauseWalltime}}, "completed 1 failed 1"},
	} {
		d := newTestQueue(t)
		id := d.submit(1, c.ad)
		for _, x := range c.exits {
			d.end(d.start(), x)
		}
		d.checkState(id, c.want)
	}
}

// TestConditionsInTurns looks at many tasks, a part of them in each turn, and rests
// afterwards.
func TestConditionsInTurns(t *testing.T) {
	d := newTestQueue(t)
	const tasks = 4*policyTasks + 10
	id := d.submit(tasks, "PeriodicHold = NumHolds == 0")
	for turn := 1; turn <= 5; turn++ {
		events := d.queue.DecidePolicies(d.now)
		d.apply(events...)
		s, _ := d.queue.Status(id.Seq)
		if want := min(turn*policyTasks, tasks); int(s.Counts[roost.Held]) != want || len(events) != 1 {
			t.Fatalf("turn %d: %d are held by %d events, want %d by one", turn, s.Counts[roost.Held], len(events), want)
		}
	}
	if at := d.queue.NextPolicies(); at.Sub(d.now) < policyInterval {
		t.Errorf("the next round is %v after this one", at.Sub(d.now))
	}
}

// TestRefusedConditions submits jobs that can have no conditions.
func TestRefusedConditions(t *testing.T) {
	d := newTestQueue(t)
	for _, src := range []string{"Service = []; PeriodicHold = true", "GangSize = 2; OnExitRemove = true",
		"Interactive = true; OnExitHold = true", "PeriodicHold = true; PeriodicHoldReason = 7"} {
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{{Ad: parseTestAd(t, src), Count: 2}},
			SubmitLimits{})
		if err == nil {
			t.Errorf("%s: accepted", src)
		}
	}
}
