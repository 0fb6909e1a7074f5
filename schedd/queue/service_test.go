package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// health has a machine say how an attempt is, and reports whether that was news.
func (d *testQueue) health(a roost.AttemptID, s roost.ServiceState, check, detail string) bool {
	d.Helper()
	e, ok := d.queue.RecordHealth(d.now, a, s, check, detail)
	if ok {
		d.apply(e)
	}
	return ok
}

// run has the next task started.
func (d *testQueue) run() roost.AttemptID {
	d.Helper()
	a := d.start()
	e, ok := d.queue.RecordStarted(d.now, a)
	if !ok {
		d.Fatalf("%v: not started", a)
	}
	d.apply(e)
	return a
}

// services writes how the tasks of a service are.
func (d *testQueue) services(id roost.JobID) string {
	var all []string
	d.queue.EachTask(TaskSelector{Job: id}, func(s JobStatus) bool {
		if t := s.Task; t.Service == nil {
			all = append(all, t.State.String())
		} else {
			all = append(all, strings.TrimSpace(t.State.String()+" "+t.Service.State.String()))
		}
		return true
	})
	s, _ := d.queue.Status(id.Seq)
	return fmt.Sprintf("%s; %d of %d", strings.Join(all, ", "), s.Service.ByState[roost.ServiceReady], s.Service.Wanted)
}

func (d *testQueue) checkServices(id roost.JobID, want string) {
	d.Helper()
	if got := d.services(id); got != want {
		d.Fatalf("got %q, want %q", got, want)
	}
}

// TestServiceStates checks that a task with checks is ready when its machine says so, and
// one without when it runs.
func TestServiceStates(t *testing.T) {
	d := newTestQueue(t)
	plain := d.submit(2, "Service = []")
	a := d.start()
	d.checkServices(plain, "starting starting, idle; 0 of 2")
	e, _ := d.queue.RecordStarted(d.now, a)
	d.apply(e)
	d.run()
	d.checkServices(plain, "running ready, running ready; 2 of 2")

	d = newTestQueue(t)
	checked := d.submit(1, "Service = []; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}")
	a = d.run()
	d.checkServices(checked, "running starting; 0 of 1")
	if !d.health(a, roost.ServiceUnready, "up", "connection refused") ||
		d.health(a, roost.ServiceUnready, "up", "connection refused") {
		t.Fatal("the first word is news, and the second is not")
	}
	if s, _ := d.queue.Status(checked.Seq); s.Task.Service.Detail != "connection refused" ||
		s.Task.Service.Check != "up" {
		t.Fatalf("got %+v", s.Task.Service)
	}
	d.now = d.now.Add(time.Second)
	d.health(a, roost.ServiceReady, "up", "")
	d.checkServices(checked, "running ready; 1 of 1")
	d.checkSame(d.restoredCopy())
	d.health(a, roost.ServiceLeaving, "", "")
	d.checkServices(checked, "running leaving; 0 of 1")
	lost, _ := d.queue.RecordLost(d.now, a, "node gone")
	d.apply(lost)
	d.checkServices(checked, "idle; 0 of 1")
	if d.health(a, roost.ServiceReady, "up", "") {
		t.Fatal("a lost attempt is ready")
	}
	batch := d.submit(1, "")
	if s, _ := d.queue.Status(batch.Seq); s.Service != nil {
		t.Fatalf("a batch job is a service: %+v", s.Service)
	}
}

// silence records that the machine of an attempt is silent, or answers again.
func (d *testQueue) silence(a roost.AttemptID, returns bool) bool {
	d.Helper()
	e, ok := d.queue.RecordSilence(d.now, a, "n1")
	if returns {
		e, ok = d.queue.RecordReturn(d.now, a)
	}
	if ok {
		d.apply(e)
	}
	return ok
}

// TestSilentMachine checks that tasks of a silent machine are lost. When it answers, its
// tasks are as they were. If it does not in time, others replace them.
func TestSilentMachine(t *testing.T) {
	d := newTestQueue(t)
	plain := d.submit(1, "Service = []")
	a := d.run()
	if !d.silence(a, false) || d.silence(a, false) {
		t.Fatal("the first silence is news, and the second is not")
	}
	d.checkServices(plain, "running lost; 0 of 1")
	if s, _ := d.queue.Status(plain.Seq); s.Task.Service.Detail != "machine n1 does not answer" {
		t.Errorf("got %+v", s.Task.Service)
	}
	several := d.submit(2, "Service = []")
	d.silence(d.run(), false)
	if s, _ := d.queue.Status(several.Seq); s.Reason != "0 of 2 ready, 1 lost" {
		t.Errorf("of a service with a lost task: %q", s.Reason)
	}
	if !d.silence(a, true) || d.silence(a, true) {
		t.Fatal("the return is news once")
	}
	d.checkServices(plain, "running ready; 1 of 1")
	d.silence(a, false)
	e, _ := d.queue.RecordLost(d.now, a, "its node was away for longer than the lease")
	d.apply(e)
	d.checkServices(plain, "idle; 0 of 1")
	if d.silence(a, true) || d.silence(a, false) {
		t.Error("an attempt that was given up is back")
	}
	d.run()
	d.checkServices(plain, "running ready; 1 of 1")

	d = newTestQueue(t)
	checked := d.submit(1, "Service = []; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}")
	a = d.run()
	d.health(a, roost.ServiceReady, "", "")
	d.silence(a, false)
	d.silence(a, true)
	d.checkServices(checked, "running starting; 0 of 1")
	d.health(a, roost.ServiceReady, "", "")
	d.checkServices(checked, "running ready; 1 of 1")
	d.health(a, roost.ServiceLeaving, "", "")
	if d.silence(a, false) {
		t.Error("a task that is being stopped is lost")
	}
	job := d.submit(1, "")
	if d.silence(d.run(), false) {
		t.Errorf("%v, which is no service, is lost", job)
	}
}

// TestServiceSpec checks what an ad may say of a service.
func TestServiceSpec(t *testing.T) {
	for src, want := range map[string]string{
		"Service = 3":                      "attribute Service: invalid request: an ad is wanted",
		"Service = [Restarts = -1]":        "attribute Restarts",
		"Service = [BackoffMax = 0.5]":     "attribute BackoffMax",
		"Service = [BackoffFirst = 7200]":  "attribute BackoffFirst",
		"Service = []; Checks = 1":         "attribute Checks: invalid request: a list of at most 16 ads is wanted",
		"Service = []; Walltime = 60":      "attribute Walltime",
		"Service = []; MaxRetries = 1":     "attribute MaxRetries",
		"Service = []; GangSize = 2":       "attribute GangSize",
		"Service = []; Interactive = true": "attribute Interactive",
		"Service = []; Rerunnable = false": "attribute Rerunnable",
		"Service = [Window = 0]":           "attribute Window",
		"Service = [LostAfter = 1e99]":     "attribute LostAfter",
		"Service = [Overlap = {}]":         "attribute Overlap",
	} {
		d := newTestQueue(t)
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []SubmitSpec{{Ad: parseTestAd(t, src), Count: 2}},
			SubmitLimits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	e := eventlog.JobEvent{Type: eventlog.BecameReady, Job: 1, ServiceState: roost.ServiceLost + 1}
	if _, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e)); err == nil {
		t.Error("a state that there is not was read")
	}
}

// crash ends an attempt after a while, and has time pass until its task may start again.
// It returns the wait.
func (d *testQueue) crash(a roost.AttemptID, life time.Duration, code int32) (wait time.Duration) {
	d.Helper()
	d.now = d.now.Add(life)
	d.end(a, eventlog.AttemptExit{Code: code})
	if due := d.queue.NextRestart(); !due.IsZero() {
		wait = due.Sub(d.now)
		if d.apply(d.queue.DueRestarts(due.Add(-1))...); d.queue.NextRestart() != due {
			d.Fatalf("started again %v early", due.Sub(d.now))
		}
		d.now = due
		d.apply(d.queue.DueRestarts(d.now)...)
	}
	return wait
}

// TestCrashLoop checks the waits of a task that fails at once. It checks when its claim
// is given up, too, and what is told of it.
func TestCrashLoop(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "Service = []")
	for n, full := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		a := d.run()
		if a.Attempt != roost.AttemptNumber(n+1) {
			t.Fatalf("attempt %d, want %d", a.Attempt, n+1)
		}
		d.now = d.now.Add(time.Second)
		d.end(a, eventlog.AttemptExit{Code: 1})
		s, _ := d.queue.Status(id.Seq)
		if want := ordinal(n+1) + " restart, exit code 1"; s.Reason != want || s.Task.State != roost.Blocked {
			t.Fatalf("%v: got %q, want %q", s.Task.State, s.Reason, want)
		}
		if got := s.Task.Service; got.Restarts != n+1 || got.EarlyEnds != n+1 || got.RestartAt == 0 ||
			s.Service.Waiting != 1 {
			t.Fatalf("got %+v", got)
		}
		if same := n != 5; d.queue.ReusesClaim(a.Task) != same {
			t.Fatalf("restart %d: the claim is kept: %v, want %v", n+1, !same, same)
		}
		d.checkSame(d.restoredCopy())
		due := d.queue.NextRestart()
		if wait := due.Sub(d.now); wait > full*time.Second || wait < full*time.Second*3/4 {
			t.Fatalf("restart %d waits %v, want about %v s", n+1, wait, int(full))
		}
		d.now = due
		d.apply(d.queue.DueRestarts(d.now)...)
		d.checkServices(id, "idle; 0 of 1")
	}
}

// TestRestartOfSuccess checks that exit status 0 is no end either. A task that lived for
// long starts at once, on its claim.
func TestRestartOfSuccess(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "Service = [BackoffFirst = 3; BackoffMax = 5]")
	if wait := d.crash(d.run(), time.Minute, 0); wait <= 2*time.Second || wait > 3*time.Second {
		t.Fatalf("waits %v, want about 3s", wait)
	}
	if wait := d.crash(d.run(), time.Minute, 0); wait <= 3*time.Second || wait > 5*time.Second {
		t.Fatalf("waits %v, want about 5s", wait)
	}
	a := d.run()
	if wait := d.crash(a, 10*time.Minute, 0); wait != 0 || !d.queue.ReusesClaim(a.Task) {
		t.Fatalf("waits %v, keeps its claim: %v", wait, d.queue.ReusesClaim(a.Task))
	}
	d.checkServices(id, "idle; 0 of 1")
	if wait := d.crash(d.run(), time.Second, 0); wait <= 2*time.Second || wait > 3*time.Second {
		t.Fatalf("waits %v, want about 3s again", wait)
	}
}

// TestNoWait checks that what Roost or a lost machine ends makes no wait.
func TestNoWait(t *testing.T) {
	for _, cause := range []eventlog.ExitCause{eventlog.CausePreemption, eventlog.CauseVacate, eventlog.CauseLease} {
		d := newTestQueue(t)
		id := d.submit(1, "Service = []")
		a := d.run()
		d.end(a, eventlog.AttemptExit{Cause: cause, Signal: 9})
		d.checkServices(id, "idle; 0 of 1")
		if s, _ := d.queue.Status(id.Seq); s.Task.Service.Restarts != 0 || d.queue.ReusesClaim(a.Task) {
			t.Fatalf("cause %v counts: %+v", cause, s.Task.Service)
		}
		e, _ := d.queue.RecordLost(d.now, d.run(), "node gone")
		d.apply(e)
		d.checkServices(id, "idle; 0 of 1")
	}
	d := newTestQueue(t)
	id := d.submit(1, "Service = []")
	for range 2 * maxMachineFailures { // a batch task would be held
		d.end(d.run(), eventlog.AttemptExit{Cause: eventlog.CauseMachine, Reason: "the disk is full"})
		d.now = d.queue.NextRestart()
		d.apply(d.queue.DueRestarts(d.now)...)
	}
	d.checkServices(id, "idle; 0 of 1")
}

// TestOrdersWhileWaiting checks what orders do to a task that waits for its restart. Its
// claim does not wait any longer.
func TestOrdersWhileWaiting(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "Service = []")
	one := TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}
	first, second := d.run(), d.run()
	d.end(first, eventlog.AttemptExit{Code: 1})
	d.checkServices(id, "blocked, running ready; 1 of 2")
	events, err := d.queue.HoldTasks(d.now, alice, one, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	if got := d.queue.TakeReleasedRestarts(); len(got) != 1 || got[0] != first.Task || d.queue.ReusesClaim(first.Task) {
		t.Fatalf("got %v, want task 0, which keeps no claim", got)
	}
	d.checkServices(id, "held, running ready; 1 of 1")
	d.now = d.now.Add(time.Hour)
	if e := d.queue.DueRestarts(d.now); len(e) != 0 || !d.queue.NextRestart().IsZero() {
		t.Fatalf("got %v of a held task", e)
	}
	events, _ = d.queue.ReleaseTasks(d.now, alice, one)
	d.apply(events...)
	d.checkServices(id, "idle, running ready; 1 of 2")
	d.run()
	d.end(second, eventlog.AttemptExit{Code: 1})
	events, _ = d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id}, "", false)
	d.apply(events...)
	d.checkServices(id, "running ready, removed; 1 of 1")
	d.end(roost.AttemptID{Task: first.Task, Attempt: 2}, eventlog.AttemptExit{Code: 0})
	d.checkState(id, "removed 2")
}

// TestRestartCauses checks why a task of a service is started again, and what all
// services have.
func TestRestartCauses(t *testing.T) {
	d := newUpdateRun(t, 2, checkedService[len("Service = []; "):])
	a := roost.AttemptID{Task: d.id.Task(0), Attempt: 1}
	cause := func(a roost.AttemptID, x *eventlog.AttemptExit) RestartCause {
		d.Helper()
		e := eventAbout(d.now, eventlog.Ended, a)
		e.Exit = x
		c, ok := d.queue.RestartCause(&e)
		if !ok {
			d.Fatalf("%v: no restart", a)
		}
		return c
	}
	for exit, want := range map[eventlog.ExitCause]RestartCause{
		eventlog.CauseExited: RestartAfterExit, eventlog.CauseMemory: RestartAfterLimit,
		eventlog.CauseLaunch: RestartAfterLaunch, eventlog.CausePreemption: RestartAfterPreemption,
		eventlog.CauseMachine: RestartAfterMachine, eventlog.CauseLease: RestartAfterLoss,
		eventlog.CauseVacate: RestartAfterOther,
	} {
		if got := cause(a, &eventlog.AttemptExit{Cause: exit}); got != want {
			t.Errorf("%v: %d, want %d", exit, got, want)
		}
	}
	if got := cause(a, nil); got != RestartAfterLoss {
		t.Errorf("a lost attempt: %d", got)
	}
	for i := range 2 {
		d.health(roost.AttemptID{Task: d.id.Task(i), Attempt: 1}, roost.ServiceReady, "", "")
	}
	d.fail(a)
	d.restartFailing()
	if got := cause(a, &eventlog.AttemptExit{Cause: CauseVacate}); got != RestartForCheck {
		t.Errorf("after a live check: %d", got)
	}
	d.end(a, AttemptExit{Cause: CauseVacate})
	d.endWaits()
	d.health(d.run(), roost.ServiceReady, "", "")
	d.evict(NodeDrain{Node: "n"})
	if got := cause(roost.AttemptID{Task: d.id.Task(0), Attempt: 2}, nil); got != RestartForDrain {
		t.Errorf("on a drained machine: %d", got)
	}
	d.end(roost.AttemptID{Task: d.id.Task(0), Attempt: 2}, AttemptExit{Cause: CauseVacate})
	d.end(roost.AttemptID{Task: d.id.Task(1), Attempt: 1}, AttemptExit{Code: 1})
	sum := d.queue.ServiceTotals()
	if sum.Tasks[roost.NoServiceState] != 2 || sum.Backoff != 1 || sum.Updates[update.Rolling] != 0 {
		t.Errorf("got %+v", sum)
	}
	d.revise("Arguments = {\"2\"}")
	if sum := d.queue.ServiceTotals(); sum.Updates[update.Rolling] != 1 {
		t.Errorf("got %+v", sum)
	}
	batch := d.submit(1, "")
	e := eventlog.JobEvent{Type: eventlog.Ended, Job: batch.Seq, Exit: &eventlog.AttemptExit{}}
	if _, ok := d.queue.RestartCause(&e); ok {
		t.Error("a task of batch is started again")
	}
}

// TestEndedUpdates checks which events end an update, each once.
func TestEndedUpdates(t *testing.T) {
	d := newUpdateRun(t, 1, "")
	d.revise("Arguments = {\"2\"}")
	var ended []update.State
	for range 100 {
		d.now = d.now.Add(time.Second)
		for _, e := range d.queue.Followups(d.now) {
			if s, ok := d.queue.EndedUpdate(&e); ok {
				ended = append(ended, s)
			}
			d.apply(e)
		}
		for _, v := range d.queue.TakeVacates() {
			d.end(v.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15})
		}
		for d.job().counts[roost.Idle] > 0 {
			d.run()
		}
	}
	if len(ended) != 1 || ended[0] != update.Done {
		t.Errorf("got %v", ended)
	}
}
