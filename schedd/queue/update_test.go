package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// updateRun is a queue with one service whose machines do what they are asked.
type updateRun struct {
	*testQueue
	id roost.JobID
}

func newUpdateRun(t testing.TB, count int, src string) *updateRun {
	d := &updateRun{testQueue: newTestQueue(t)}
	d.id = d.submit(count, "Service = []; Arguments = {\"1\"}; "+src)
	d.pass(time.Minute)
	return d
}

// revise updates the service by a job file.
func (d *updateRun) revise(src string) RevisionPlan {
	d.Helper()
	return d.reviseCount(taskCount(d.job()), src)
}

// reviseCount is revise with another number of tasks.
func (d *updateRun) reviseCount(count int, src string) RevisionPlan {
	d.Helper()
	events, plan, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id},
		JobRevision{Ad: serviceAd(d, src), Count: count}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	for _, e := range events {
		e.Submission.DeferredAdmission = false // quotas allow everything
	}
	d.apply(events...)
	return plan
}

// serviceAd is the ad of a service that says no more of itself than a text does.
func serviceAd(t testing.TB, src string) *classad.Ad {
	t.Helper()
	ad := parseTestAd(t, src)
	if _, ok := ad.Lookup(roost.AttrService); !ok {
		ad.SetAd(roost.AttrService, classad.New())
	}
	return ad
}

func (d *updateRun) job() *job { return d.queue.jobs[d.id.Seq] }

func (d *updateRun) command(c update.Command) {
	d.Helper()
	events, err := d.queue.CommandUpdate(d.now, alice, TaskSelector{Job: d.id}, c)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}

// pass lets time pass in steps of a second.
func (d *updateRun) pass(length time.Duration) {
	d.Helper()
	for end := d.now.Add(length); d.now.Before(end); d.now = d.now.Add(time.Second) {
		for events := d.queue.Followups(d.now); len(events) > 0; events = d.queue.Followups(d.now) {
			d.apply(events...)
		}
		for _, v := range d.queue.TakeVacates() {
			d.end(v.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15})
		}
		for d.job().counts[roost.Idle] > 0 {
			d.run()
		}
	}
}

// restart brings the queue back from its snapshot.
func (d *updateRun) restart() {
	d.Helper()
	snapshot, _ := d.queue.Snapshot(d.id.Seq)
	d.queue = New("h")
	if err := d.queue.RestoreSnapshot(snapshot); err != nil {
		d.Fatal(err)
	}
	d.queue.Check()
}

// arguments writes what the attempts run with, and the state of the update.
func (d *updateRun) arguments() string {
	d.Helper()
	var all strings.Builder
	for i := range d.job().state {
		r := d.job().records.Own(i)
		p, err := d.queue.Program(roost.AttemptID{Task: d.id.Task(i), Attempt: r.Attempt})
		if err != nil {
			d.Fatal(err)
		}
		all.WriteString(strings.Join(p.Arguments, " "))
	}
	state := update.None
	if s, ok := d.queue.UpdateStatus(d.id.Seq, d.now); ok {
		state = s.State
	}
	return fmt.Sprintf("%s %v", &all, state)
}

func (d *updateRun) expect(want string) {
	d.Helper()
	if got := d.arguments(); got != want {
		s, _ := d.queue.UpdateStatus(d.id.Seq, d.now)
		d.Fatalf("got %q, want %q: %+v", got, want, s)
	}
}

// TestUpdateRolling checks that tasks get a new revision one after another. A restart of
// the schedd in between changes nothing.
func TestUpdateRolling(t *testing.T) {
	d := newUpdateRun(t, 4, "")
	d.expect("1111 none")
	if p := d.revise(`Arguments = {"2"}`); p.Effect != jobad.RestartTask || p.Revision != 2 {
		t.Fatalf("got %+v", p)
	}
	d.pass(5 * time.Second)
	d.expect("2111 rolling")
	d.restart()
	d.pass(10 * time.Second)
	d.expect("2211 rolling")
	d.pass(time.Minute)
	d.expect("2222 done")
	if p := d.revise(`Arguments = {"2"}`); p.Effect != NoEffect {
		t.Fatalf("the same again: %+v", p)
	}
	d.command(update.Undo)
	d.restart()
	d.pass(time.Minute)
	d.expect("1111 undone")
	d.pass(25 * time.Hour)
	d.expect("1111 closed")
	if d.revise(`Arguments = {"3"}`); revisionsOf(d.job()).revision() != 3 {
		t.Fatalf("got revision %d, want 3", revisionsOf(d.job()).revision())
	}
	d.pass(time.Minute)
	d.expect("3333 done")
}

// TestUpdateRetainsRevision checks that a task which ends while the update waits is
// started again as it was.
func TestUpdateRetainsRevision(t *testing.T) {
	d := newUpdateRun(t, 3, "")
	d.revise(`Arguments = {"2"}; Update = [Canary = 1]`)
	d.pass(time.Minute)
	d.expect("211 waiting-promote")
	last := roost.AttemptID{Task: d.id.Task(2), Attempt: d.job().records.Own(2).Attempt}
	e, ok := d.queue.RecordLost(d.now, last, "its machine is gone")
	if !ok {
		t.Fatal("it is not live")
	}
	d.apply(e)
	d.restart()
	d.pass(time.Second)
	d.expect("211 waiting-promote")
	if r := d.job().records.Own(2); r.Attempt != 2 {
		t.Fatalf("got attempt %d", r.Attempt)
	}
	d.command(update.Promote)
	d.pass(time.Minute)
	d.expect("222 done")
}

// TestUpdateEndsWait checks that a task which waits for its restart gets the new
// revision at once. One that ends by itself while it is stopped waits for nothing.
func TestUpdateEndsWait(t *testing.T) {
	d := newUpdateRun(t, 1, "")
	own := func() *eventlog.TaskRecord { return d.job().records.Own(0) }
	d.end(roost.AttemptID{Task: d.id.Task(0), Attempt: 1}, eventlog.AttemptExit{Cause: eventlog.CauseExited, Code: 1})
	if s := own().Service; !s.Waits || !s.ReuseClaim {
		t.Fatalf("it does not wait for its restart: %+v", s)
	}
	d.revise(`Arguments = {"2"}`)
	d.apply(d.queue.Followups(d.now)...)
	if d.job().state[0] != roost.Idle || d.queue.ReusesClaim(d.id.Task(0)) ||
		len(d.queue.TakeReleasedRestarts()) != 1 {
		t.Fatalf("it is %v: %+v", d.job().state[0], own().Service)
	}
	d.pass(time.Second)
	d.expect("2 rolling")
	d.pass(time.Minute)
	d.revise(`Arguments = {"3"}`)
	d.apply(d.queue.Followups(d.now)...)
	v := d.queue.TakeVacates()
	if len(v) != 1 {
		t.Fatalf("got %+v", v)
	}
	d.end(v[0].Attempt, eventlog.AttemptExit{Cause: eventlog.CauseExited, Code: 1})
	if d.job().state[0] != roost.Idle || own().Service.Restarts != 1 {
		t.Fatalf("it is %v: %+v", d.job().state[0], own().Service)
	}
	d.pass(time.Minute)
	d.expect("3 done")
	d.restart()
}

// TestUpdateOwnRevision checks that an attempt of an older revision has the checks and
// the notice of its own.
func TestUpdateOwnRevision(t *testing.T) {
	d := newUpdateRun(t, 2, "NoticePeriod = 5")
	d.revise(`Arguments = {"2"}; NoticePeriod = 50; Service = [BackoffFirst = 9; BackoffMax = 20]; ` +
		`Checks = {[Name = "up"; Kind = "exec"; Command = {"true"}]}; Update = [Canary = 1]`)
	d.pass(2 * time.Second)
	canary := roost.AttemptID{Task: d.id.Task(0), Attempt: 2}
	d.health(canary, roost.ServiceReady, "up", "")
	d.pass(time.Minute)
	d.expect("21 waiting-promote")
	crashed := roost.AttemptID{Task: d.id.Task(1), Attempt: 1}
	d.end(crashed, eventlog.AttemptExit{Cause: eventlog.CauseExited, Code: 1})
	if at := d.queue.NextRestart(); at.IsZero() || at.Sub(d.now) > time.Second {
		t.Fatalf("it waits until %v, as the newer revision does", at)
	}
	d.pass(2 * time.Second)
	d.apply(d.queue.DueRestarts(d.now)...)
	d.pass(2 * time.Second)
	d.restart()
	for _, want := range []struct {
		attempt  roost.AttemptID
		revision uint32
		notice   time.Duration
		checks   int
	}{{canary, 2, 50 * time.Second, 1}, {roost.AttemptID{Task: d.id.Task(1), Attempt: 2}, 1, 5 * time.Second, 0}} {
		p, err := d.queue.Program(want.attempt)
		if err != nil || p.Revision != want.revision || p.NoticePeriod != want.notice ||
			len(p.Service.Checks) != want.checks {
			t.Errorf("%v is of revision %d, with a notice of %v and %d checks: %v", want.attempt, p.Revision,
				p.NoticePeriod, len(p.Service.Checks), err)
		}
	}
	d.checkServices(d.id, "running ready, running ready; 2 of 2")
}

// TestUpdateSupersedes checks that a second update takes over, and that its undo goes
// back to what the first one found.
func TestUpdateSupersedes(t *testing.T) {
	d := newUpdateRun(t, 3, "")
	d.revise(`Arguments = {"2"}`)
	d.pass(5 * time.Second)
	d.revise(`Arguments = {"3"}`)
	d.pass(5 * time.Second)
	d.expect("311 rolling")
	d.command(update.Undo)
	d.pass(time.Minute)
	d.expect("111 undone")
}

// TestUpdateInPlace checks that a change that no attempt depends on ends none.
func TestUpdateInPlace(t *testing.T) {
	d := newUpdateRun(t, 2, "")
	if p := d.revise(`Arguments = {"1"}; JobPrio = 5`); p.Effect != InPlace {
		t.Fatalf("got %+v", p)
	}
	d.pass(time.Minute)
	d.expect("11 none")
	events, p, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id},
		JobRevision{Ad: serviceAd(d, `Arguments = {"1"}; JobPrio = 5`), Count: 2}, SubmitLimits{})
	if err != nil || len(events) != 0 || p.Effect != NoEffect {
		t.Errorf("the same again: %v, %+v, %v", events, p, err)
	}
	if d.job().spec.Priority != 5 || d.job().records.Own(0).Attempt != 1 {
		t.Fatal("the priority was not changed in place")
	}
}

// states writes the states of all tasks.
func (d *updateRun) states() string {
	var all []string
	for _, s := range d.job().state {
		all = append(all, s.String())
	}
	return strings.Join(all, " ")
}

func (d *updateRun) expectStates(want string) {
	d.Helper()
	if got := d.states(); got != want {
		d.Fatalf("got %q, want %q", got, want)
	}
}

// TestUpdateCount checks that a service gets more tasks, or fewer, while others go on.
// The last ones are ended in the order in which tasks are stopped.
func TestUpdateCount(t *testing.T) {
	d := newUpdateRun(t, 2, "")
	p := d.reviseCount(4, `Arguments = {"1"}`)
	if p.Effect != InPlace || p.CountBefore != 2 || p.Count != 4 {
		t.Fatalf("got %+v", p)
	}
	d.pass(5 * time.Second)
	d.restart()
	d.expect("1111 none")
	d.expectStates("running running running running")
	d.reviseCount(1, `Arguments = {"1"}`)
	if v := d.queue.TakeVacates(); len(v) != 3 || v[0].Fast || v[0].Attempt.Task.Index != 1 {
		t.Fatalf("got %+v", v)
	}
	last := roost.AttemptID{Task: d.id.Task(3), Attempt: 1}
	d.end(last, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15})
	d.expectStates("running running running removed")
	d.restart()
	d.reviseCount(5, `Arguments = {"1"}`) // while the second and the third are still being stopped
	d.restart()
	d.pass(10 * time.Second)
	d.expectStates("running running running running running")
	for i, want := range []roost.AttemptNumber{1, 2, 2, 2, 1} {
		if got := d.job().records.Own(i).Attempt; got != want {
			t.Errorf("task %d is at attempt %d, want %d", i, got, want)
		}
	}
	if got := d.queue.OpenTaskCount(); got != 5 {
		t.Errorf("%d tasks are open", got)
	}
}

// TestUpdateCountUndone checks that an undo brings the number of tasks back, too.
func TestUpdateCountUndone(t *testing.T) {
	d := newUpdateRun(t, 2, "")
	d.reviseCount(3, `Arguments = {"2"}`)
	d.pass(time.Minute)
	d.expect("222 done")
	d.command(update.Undo)
	d.pass(time.Minute)
	d.expectStates("running running removed")
	if s, _ := d.queue.UpdateStatus(d.id.Seq, d.now); s.State != update.Undone || taskCount(d.job()) != 2 {
		t.Fatalf("got %+v with %d tasks", s, taskCount(d.job()))
	}
}

// TestUpdateSurge checks that with max_down = 0 surge tasks become ready before any other
// is taken down. They go when the update has ended.
func TestUpdateSurge(t *testing.T) {
	policy := `Update = [Surge = "1"; MaxDown = "0"; MinReady = 2]; `
	d := newUpdateRun(t, 3, policy)
	d.revise(policy + `Arguments = {"2"}`)
	d.apply(d.queue.Followups(d.now)...)
	if v := d.queue.TakeVacates(); len(v) > 0 || len(d.job().state) != 4 {
		t.Fatalf("%v were stopped before the surge of %d tasks is ready", v, len(d.job().state)-3)
	}
	d.restart()
	least := 3
	for range 60 {
		d.pass(time.Second)
		s, _ := d.queue.Status(d.id.Seq)
		least = min(least, s.Service.ByState[roost.ServiceReady])
	}
	d.expectStates("running running running removed")
	if s, _ := d.queue.UpdateStatus(d.id.Seq, d.now); s.State != update.Done || least < 3 {
		t.Fatalf("%+v, and at least %d tasks were ready", s, least)
	}
	d.restart()
	d.revise(policy + `Arguments = {"3"}`) // the index of the surge is used again
	d.pass(time.Minute)
	d.expectStates("running running running removed")
	if r := d.job().records.Own(3); r.Attempt != 2 {
		t.Fatalf("the task of the surge is at attempt %d", r.Attempt)
	}
}

// TestUpdateOfHeldService checks that an update adds no tasks to a service that is held.
// When that is released, the next update does.
func TestUpdateOfHeldService(t *testing.T) {
	policy := `Update = [Surge = "1"; MaxDown = "0"]; `
	d := newUpdateRun(t, 3, policy)
	hold, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: d.id}, "by alice")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(hold...)
	d.pass(time.Second)
	d.revise(policy + `Arguments = {"2"}`)
	d.pass(time.Minute)
	if n := len(d.job().state); n != 3 {
		t.Fatalf("it has %d tasks", n)
	}
	release, err := d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: d.id})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(release...)
	d.revise(policy + `Arguments = {"3"}`)
	d.pass(time.Minute)
	d.expectStates("running running running removed")
}

// TestUpdateRestart checks that a restart without a change ends each attempt once.
func TestUpdateRestart(t *testing.T) {
	d := newUpdateRun(t, 3, "")
	events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id}, JobRevision{}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.pass(2 * time.Minute)
	d.expect("111 done")
	for i := range 3 {
		if r := d.job().records.Own(i); r.Attempt != 2 {
			t.Fatalf("task %d is at attempt %d", i, r.Attempt)
		}
	}
}

// TestUpdateRights checks that only the owner and administrators update a job, and that
// what is no service is refused.
func TestUpdateRights(t *testing.T) {
	d := newUpdateRun(t, 1, "")
	sel := TaskSelector{Job: d.id}
	if _, _, err := d.queue.ReviseJob(d.now, bob, sel, JobRevision{}, SubmitLimits{}); !errors.Is(err,
		roost.PermissionDenied) {
		t.Fatalf("bob restarts alice's service: %v", err)
	}
	if _, err := d.queue.CommandUpdate(d.now, bob, sel, update.Undo); !errors.Is(err, roost.PermissionDenied) {
		t.Fatalf("bob undoes alice's update: %v", err)
	}
	batch := d.submit(1, "")
	_, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: batch}, JobRevision{}, SubmitLimits{})
	if !errors.Is(err, roost.Conflict) {
		t.Fatalf("a batch job is restarted: %v", err)
	}
}

// TestUpdateOfUncertainJob checks that an update does not release a job whose record was
// damaged. An attempt of it may live that nobody knows of.
func TestUpdateOfUncertainJob(t *testing.T) {
	d := newUpdateRun(t, 2, "")
	for i := range 2 {
		d.end(d.queue.attemptOf(d.job(), i), eventlog.AttemptExit{Cause: eventlog.CauseExited})
	}
	e, ok := d.queue.HoldDamaged(d.now, d.id.Seq, 1000, "a record of it is lost")
	if !ok {
		t.Fatal("it is not held")
	}
	d.apply(e)
	d.revise(`Arguments = {"2"}; `)
	d.pass(time.Minute)
	if n := d.job().counts[roost.Held]; n != 2 {
		t.Errorf("%d tasks are held, want 2", n)
	}
}

// TestUpdateWithClockSetBack checks that an update ends although the wall clock is set
// back while it goes on.
func TestUpdateWithClockSetBack(t *testing.T) {
	d := newUpdateRun(t, 2, `Update = [MinReady = 5]; `)
	d.revise(`Arguments = {"2"}; Update = [MinReady = 5]; `)
	d.pass(3 * time.Second)
	d.now = d.now.AddDate(-1, 0, 0)
	d.pass(time.Minute)
	if s := d.job().update.State; s != update.Done {
		t.Errorf("it is %v", s)
	}
}
