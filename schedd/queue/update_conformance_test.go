package queue

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TestNomadNewCanariesScaleDown checks an update with canaries to fewer tasks. It ends
// the others, and tries the new revision among those that stay.
func TestNomadNewCanariesScaleDown(t *testing.T) {
	d := newUpdateRun(t, 4, "")
	p := d.reviseCount(2, `Arguments = {"2"}; Update = [Canary = 1; MinReady = 1]`)
	if p.CountBefore != 4 || p.Count != 2 {
		t.Fatalf("got %+v", p)
	}
	d.pass(time.Minute)
	d.expectStates("running running removed removed")
	d.expect("2111 waiting-promote")
	d.restart()
	d.command(update.Promote)
	d.pass(time.Minute)
	d.expect("2222 done")
}

// TestUpdateOfRequirements checks that tasks with other requirements are started again.
// An undo brings the requirements back.
func TestUpdateOfRequirements(t *testing.T) {
	d := newUpdateRun(t, 2, "")
	p := d.revise(`Arguments = {"1"}; Requirements = TARGET.Arch == "arm64"; Update = [MinReady = 1]`)
	if p.Effect != jobad.RestartTask {
		t.Fatalf("got %+v", p)
	}
	d.pass(time.Minute)
	d.expect("11 done")
	for i := range 2 {
		if got := d.job().records.Own(i).Attempt; got != 2 {
			t.Errorf("task %d is at attempt %d, want 2", i, got)
		}
	}
	d.command(update.Undo)
	d.pass(time.Minute)
	if _, there := parsedAd(d.job()).Lookup(roost.AttrRequirements); there {
		t.Error("the undo has left the requirements")
	}
}

// TestScheduleRunRemoved checks that a run that its user has removed holds up no other.
func TestScheduleRunRemoved(t *testing.T) {
	d := newTestQueue(t)
	d.scheduled(`Cron = "0 * * * *"`)
	d.expectTick("1 01:00:00", "job 2[], ticked 1 01:00:00")
	d.expectTick("1 02:00:00", "skipped 1 02:00:00")
	events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: roost.JobID{Seq: 2, Host: "h"}}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectTick("1 03:00:00", "job 3[], ticked 1 03:00:00")
}
