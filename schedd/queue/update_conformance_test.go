package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
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

// TestUpdateOfRequirements checks that a task stays if its machine satisfies the new
// requirements, and is started again elsewhere if not. An undo brings the requirements
// back.
func TestUpdateOfRequirements(t *testing.T) {
	d := newUpdateRun(t, 3, "")
	const revised = `Arguments = {"1"}; Requirements = TARGET.Arch == "arm64"; Update = [MinReady = 1]`
	p := d.revise(revised)
	if p.Effect != jobad.MatchTask || p.Revision != 2 {
		t.Fatalf("got %+v", p)
	}
	otherArch := func(i int) string {
		if i == 1 {
			return "the new requirements are false for this machine"
		}
		return ""
	}
	if asked := d.passResizing(time.Minute, otherArch); asked != 3 {
		t.Errorf("%d machines are asked, want 3", asked)
	}
	d.expect("111 done")
	want := []roost.AttemptNumber{1, 2, 1}
	for i, attempt := range want {
		if got := d.job().records.Own(i).Attempt; got != attempt {
			t.Errorf("task %d is at attempt %d, want %d", i, got, attempt)
		}
		if ad := d.job().class(i).request.Ad; !strings.Contains(ad, "arm64") {
			t.Errorf("task %d is of a request without the requirements: %s", i, ad)
		}
	}
	d.restart()
	d.command(update.Undo)
	if asked := d.passResizing(time.Minute, func(int) string { return "" }); asked != 3 {
		t.Errorf("%d machines are asked for the undo, want 3", asked)
	}
	if _, there := parsedAd(d.job()).Lookup(roost.AttrRequirements); there {
		t.Error("the undo has left the requirements")
	}
	if p := d.revise(`Arguments = {"2"}; Requirements = TARGET.Arch == "arm64"`); p.Effect != jobad.RestartTask {
		t.Errorf("other arguments with it: got %v", p.Effect)
	}
}

// TestRequirementsAreAsked checks what a machine is asked when the requirements of its
// task change, and when they do not.
func TestRequirementsAreAsked(t *testing.T) {
	d := newUpdateRun(t, 1, "")
	a := roost.AttemptID{Task: d.id.Task(0), Attempt: 1}
	d.revise(`Arguments = {"1"}; Requirements = TARGET.Arch == "arm64"; Update = [Resize = "restart"; MinReady = 1]`)
	d.pass(time.Second)
	r, ok := d.queue.WantedSize(a)
	if !ok || !strings.Contains(r.RequestAd, "arm64") {
		t.Fatalf("asked for %+v, %t", r, ok)
	}
	if s, _ := d.queue.TaskStatus(a.Task); !strings.Contains(s.Task.Resize, "satisfies the new requirements") {
		t.Errorf("the task says %q", s.Task.Resize)
	}
	e, ok := d.queue.RecordResize(d.now, a, r.Resources, "")
	if !ok || e.Type != eventlog.Resized || !strings.Contains(e.Reason, "satisfies") {
		t.Fatalf("got %+v, %t", e, ok)
	}
	d.apply(e)
	d.pass(time.Minute)
	d.revise(`Arguments = {"1"}; Requirements = TARGET.Arch == "arm64"; RequestCpus = 2; Update = [MinReady = 1]`)
	d.pass(time.Second)
	if r, ok := d.queue.WantedSize(a); !ok || r.RequestAd != "" {
		t.Errorf("another size with the same requirements: %+v, %t", r, ok)
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
