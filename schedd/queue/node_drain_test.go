package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// evict has the queue decide what is evicted of the only machine, and returns the tasks.
func (d *testQueue) evict(drain NodeDrain) string {
	d.Helper()
	var all []roost.AttemptID
	for _, a := range d.queue.ActiveAttempts() {
		all = append(all, a.Attempt)
	}
	d.queue.SetDrains([]NodeDrain{drain})
	var ended []string
	for _, one := range d.queue.Drains(d.now) {
		d.apply(d.queue.EvictAttempts(d.now, one, all)...)
	}
	for _, v := range d.queue.TakeVacates() {
		if !v.ReleaseClaim {
			d.Fatalf("%v goes on with its claim", v.Attempt)
		}
		ended = append(ended, fmt.Sprint(v.Attempt.Task.Job.Seq, "[", v.Attempt.Task.Index, "]"))
	}
	return strings.Join(ended, " ")
}

// TestDrainWithinBudget checks that tasks of services leave a drained machine in turn.
// Those of batch may run to their end, and after the deadline nothing stays.
func TestDrainWithinBudget(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, "Service = []")
	first := d.run()
	d.run()
	d.run()
	d.submit(1, "")
	d.run()
	drain := NodeDrain{Node: "n", Reason: "new memory", Deadline: d.now.Add(time.Hour)}
	if got := d.evict(drain); got != "1[0]" {
		t.Fatalf("got %q", got)
	}
	d.checkServices(id, "running leaving, running ready, running ready; 2 of 3")
	s, _ := d.queue.TaskStatus(id.Task(1))
	want := "its machine is drained, and it waits: 1 of the other tasks are down, and max_down is 1"
	if s.Reason != want {
		t.Fatalf("got %q, want %q", s.Reason, want)
	}
	if d.health(first, roost.ServiceReady, "", ""); d.evict(drain) != "" {
		t.Fatal("what the first one says while it ends makes room for the second")
	}
	d.checkSame(d.restoredCopy())
	d.end(first, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
	if got := d.evict(drain); got != "" {
		t.Fatalf("got %q while the first one is down", got)
	}
	d.run()
	if got := d.evict(drain); got != "1[0]" {
		t.Fatalf("got %q, and there is only one machine", got)
	}
	if d.now = drain.Deadline; d.queue.NextEviction() != d.now {
		t.Fatalf("it looks again at %v", d.queue.NextEviction())
	}
	if got := d.evict(drain); got != "1[1] 1[2] 2[0]" {
		t.Fatalf("got %q at the deadline", got)
	}
	s, _ = d.queue.TaskStatus(id.Task(1))
	if s.Reason != "leaving: the deadline for its machine to be drained is over: new memory" {
		t.Fatalf("it does not wait any more: %q", s.Reason)
	}
}

// TestDrainBeginsLater checks that nothing is evicted before the drain begins, or after
// its end.
func TestDrainBeginsLater(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "Service = []")
	d.run()
	drain := NodeDrain{Node: "n", From: d.now.Add(time.Hour), Until: d.now.Add(2 * time.Hour)}
	if got := d.evict(drain); got != "" || d.queue.NextEviction() != drain.From {
		t.Fatalf("got %q, and it looks again at %v", got, d.queue.NextEviction())
	}
	d.now = drain.Until
	if got := d.evict(drain); got != "" {
		t.Fatalf("got %q after its end", got)
	}
	d.now = drain.From
	if got := d.evict(drain); got != "1[0]" {
		t.Fatalf("got %q when it begins", got)
	}
}

// TestDrainDuringUpdate checks that a drain waits for what an update has taken down. A
// task that is down anyway goes at once (k8s: DisruptionController, unhealthy pods).
func TestDrainDuringUpdate(t *testing.T) {
	d := newUpdateRun(t, 3, "")
	d.revise(`Arguments = {"2"}`)
	d.apply(d.queue.Followups(d.now)...)
	if v := d.queue.TakeVacates(); len(v) != 1 || v[0].Attempt.Task.Index != 0 {
		t.Fatalf("got %+v", v)
	}
	if got := d.evict(NodeDrain{Node: "n"}); got != "" {
		t.Fatalf("%q was evicted while the update has a task down", got)
	}
	d.end(roost.AttemptID{Task: d.id.Task(0), Attempt: 1}, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
	d.health(roost.AttemptID{Task: d.id.Task(2), Attempt: 1}, roost.ServiceUnready, "", "")
	if got := d.evict(NodeDrain{Node: "n"}); got != "1[2]" {
		t.Fatalf("got %q, and only task 2 is down anyway", got)
	}
}
