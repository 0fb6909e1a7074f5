package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// answerResizes has the machines answer what they are asked. The refusal of a task is
// looked up by its index; empty: it has its size.
func (d *updateRun) answerResizes(refusal func(i int) string) (asked int) {
	d.Helper()
	for _, r := range d.queue.TakeResizes() {
		asked++
		e, ok := d.queue.RecordResize(d.now, r.Attempt, r.Resources, refusal(r.Attempt.Task.Index))
		if !ok {
			d.Fatalf("the answer about %v is none", r)
		}
		d.apply(e)
	}
	return asked
}

// passResizing is pass with machines that answer.
func (d *updateRun) passResizing(length time.Duration, refusal func(i int) string) (asked int) {
	d.Helper()
	for end := d.now.Add(length); d.now.Before(end); {
		d.pass(time.Second)
		asked += d.answerResizes(refusal)
	}
	return asked
}

func granted(int) string { return "" }

// sizes writes the cores and the attempt of each task.
func (d *updateRun) sizes() string {
	d.Helper()
	var all []string
	for i := range d.job().state {
		a := d.queue.attemptOf(d.job(), i)
		_, size, ok := d.queue.AttemptSize(a)
		if !ok {
			d.Fatalf("task %d has no live attempt", i)
		}
		all = append(all, fmt.Sprintf("%v.%d", size.CPU.Cores(), a.Attempt))
	}
	return strings.Join(all, " ")
}

func (d *updateRun) expectSizes(want string) {
	d.Helper()
	if got := d.sizes(); got != want {
		s, _ := d.queue.UpdateStatus(d.id.Seq, d.now)
		d.Fatalf("got %q, want %q: %+v", got, want, s)
	}
}

// TestResizeInPlace gives the tasks of a service other sizes, and back. None is started
// again, none is down, and the queue comes back from its snapshot between the steps.
func TestResizeInPlace(t *testing.T) {
	d := newUpdateRun(t, 3, "RequestCpus = 1; Update = [Settling = 10]")
	const large = `Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 10]`
	if plan := d.revise(large); plan.Effect != ResizeTask || plan.Revision != 2 {
		t.Fatalf("got %+v", plan)
	}
	d.pass(time.Second)
	if d.restart(); len(d.queue.resizes) != 1 {
		t.Error("the machine is not asked again after a restart")
	}
	d.passResizing(5*time.Second, granted)
	d.expectSizes("2.1 1.1 1.1") // the first one settles
	if s, _ := d.queue.UpdateStatus(d.id.Seq, d.now); s.Budget.Planned != 0 || s.Tasks[update.TaskSettling] != 1 {
		t.Errorf("got %+v", s)
	}
	d.passResizing(time.Minute, granted)
	d.expectSizes("2.1 2.1 2.1")
	d.expect("111 done")
	d.restart()
	d.expectSizes("2.1 2.1 2.1")
	d.command(update.Undo)
	d.passResizing(time.Minute, granted)
	d.expectSizes("1.1 1.1 1.1")
	d.expect("111 undone")
}

// TestResizeRefused has a task restarted whose machine has no room, within the budget. It
// asks once more for less memory than a task uses.
func TestResizeRefused(t *testing.T) {
	d := newUpdateRun(t, 2, "RequestCpus = 1; RequestMemory = 100; Update = [Settling = 1; AtOnce = \"2\"]")
	noRoom := func(i int) string {
		if i == 1 {
			return "no room"
		}
		return ""
	}
	d.revise(`Arguments = {"1"}; RequestCpus = 2; RequestMemory = 100; Update = [Settling = 1; AtOnce = "2"]`)
	if asked := d.passResizing(time.Minute, noRoom); asked != 2 {
		t.Errorf("machines were asked %d times", asked)
	}
	d.expectSizes("2.1 2.2")
	d.revise(`Arguments = {"1"}; RequestCpus = 2; RequestMemory = 50; Update = [Settling = 1; AtOnce = "2"]`)
	d.passResizing(30*time.Second, noRoom)
	st, _ := d.queue.TaskStatus(d.id.Task(1))
	if want := "it cannot have 2 cores and 50MiB of memory where it runs: no room"; !strings.Contains(st.Reason, want) {
		t.Errorf("got %q, want %q", st.Reason, want)
	}
	d.expectSizes("2.1 2.2")
	if asked := d.passResizing(2*time.Minute, noRoom); asked != 1 {
		t.Errorf("the machine was asked again %d times", asked)
	}
	d.expectSizes("2.1 2.3")
}

// TestResizeAnswers drops answers that nobody asked for. What ends while its machine is
// asked begins again with its new size.
func TestResizeAnswers(t *testing.T) {
	d := newUpdateRun(t, 1, "RequestCpus = 1; Update = [Settling = 1]")
	a := d.queue.attemptOf(d.job(), 0)
	_, has, _ := d.queue.AttemptSize(a)
	larger := has
	larger.CPU = 8000
	if _, ok := d.queue.RecordResize(d.now, a, larger, ""); ok {
		t.Error("a machine has given a size that nobody asked for")
	}
	d.revise(`Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 1]`)
	d.pass(time.Second)
	if _, ok := d.queue.RecordResize(d.now, a, larger, ""); ok {
		t.Error("a machine has given more than it was asked for")
	}
	old := a
	old.Attempt++
	wanted, _ := d.queue.WantedSize(a)
	if _, ok := d.queue.RecordResize(d.now, old, wanted.Resources, ""); ok {
		t.Error("an answer about another attempt was taken")
	}
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseExited})
	d.pass(2 * time.Minute)
	d.expectSizes("2.2")
	if _, ok := d.queue.RecordResize(d.now, a, wanted.Resources, ""); ok {
		t.Error("an answer about an attempt that has ended was taken")
	}
	if _, _, err := d.queue.ReviseJob(d.now, CallerIdentity{User: "bob", UID: 77}, TaskSelector{Job: d.id},
		JobRevision{Ad: serviceAd(t, `Arguments = {"1"}; RequestCpus = 4`), Count: 1}, SubmitLimits{}); err == nil {
		t.Error("another user has resized the service")
	}
}

// TestResizeByRestart has tasks restarted whose program reads its limits once.
func TestResizeByRestart(t *testing.T) {
	d := newUpdateRun(t, 1, "RequestCpus = 1; Update = [Settling = 1; Resize = \"restart\"]")
	d.revise(`Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 1; Resize = "restart"]`)
	if asked := d.passResizing(time.Minute, granted); asked != 0 {
		t.Error("its machine was asked")
	}
	d.expectSizes("2.2")
}

// TestResizeSilentMachine has a task restarted whose machine never answers.
func TestResizeSilentMachine(t *testing.T) {
	d := newUpdateRun(t, 1, "RequestCpus = 1; Update = [Settling = 1; ReadyWithin = 60]")
	d.revise(`Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 1; ReadyWithin = 60]`)
	d.pass(50 * time.Second)
	d.expectSizes("1.1")
	d.pass(time.Minute)
	d.expectSizes("2.2")
	d.expect("1 done")
}

// TestResizeSuperseded has two resizes follow each other, and an undo of both.
func TestResizeSuperseded(t *testing.T) {
	d := newUpdateRun(t, 2, "RequestCpus = 1; Update = [Settling = 1]")
	d.revise(`Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 1]`)
	d.pass(time.Second)
	d.revise(`Arguments = {"1"}; RequestCpus = 3; Update = [Settling = 1]`) // the first machine has not answered
	d.restart()
	d.answerResizes(granted)
	d.expectSizes("2.1 1.1")
	d.restart()
	d.expectSizes("2.1 1.1")
	d.command(update.Undo)
	d.passResizing(time.Minute, granted)
	d.expectSizes("1.1 1.1")
	d.expect("11 undone")
}

// TestResizeAwaitsQuota asks no machine for more before quotas allow it.
func TestResizeAwaitsQuota(t *testing.T) {
	d := newUpdateRun(t, 1, "RequestCpus = 1; Update = [Settling = 1]")
	events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id}, JobRevision{
		Ad: serviceAd(t, `Arguments = {"1"}; RequestCpus = 2; Update = [Settling = 1]`), Count: 1}, SubmitLimits{})
	if err != nil || !events[0].Submission.DeferredAdmission {
		t.Fatalf("%v, %+v", err, events)
	}
	d.queue.Apply(events[0])
	if asked := d.passResizing(10*time.Second, granted); asked != 0 {
		t.Error("a machine was asked for more than quotas allow")
	}
	d.apply(d.queue.AdmitDeferred(d.now, d.id.Seq)...)
	d.passResizing(10*time.Second, granted)
	d.expectSizes("2.1")
}
