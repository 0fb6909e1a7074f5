package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// logged says what entries of a user log have in them.
func logged(list []UserLogEntry) string {
	var parts []string
	for _, e := range list {
		for _, t := range e.Tasks {
			parts = append(parts, fmt.Sprintf("%v %d %v %s", e.Type, t.Index, t.State, t.Node))
		}
	}
	return strings.Join(parts, ", ")
}

// TestUserLog checks what a user log says, as things happen and from the events of the
// log of the queue. Both say the same.
func TestUserLog(t *testing.T) {
	d := newTestQueue(t)
	plain := d.submit(1, `JobName = "plain"`)
	id := d.submit(2, `UserLog = "/home/alice/$(JobSeq).log"`)
	if got := fmt.Sprint(UserLogJobs(d.queue)); got != "[2]" {
		t.Errorf("jobs with a user log: %s", got)
	}
	var live []UserLogEntry
	note := func() {
		e := d.log[len(d.log)-1]
		if entry, ok := UserLogOf(d.queue, &e); ok {
			live = append(live, entry)
		}
	}
	act := func(events []eventlog.JobEvent, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			d.apply(e)
			note()
		}
	}
	note()
	target := func(i int) TaskSelector {
		return TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: i, Last: i}}}
	}
	assign := func(i int) roost.AttemptID {
		t.Helper()
		e, a, err := d.queue.AssignNext(d.now, id.Task(i), "n", "unix:/n", 1)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(e)
		started, ok := d.queue.RecordStarted(d.now, a)
		if !ok {
			t.Fatal("it did not start")
		}
		d.apply(started)
		note()
		return a
	}
	end := func(a roost.AttemptID, x eventlog.AttemptExit) {
		t.Helper()
		e, err := d.queue.RecordEnded(d.now, a, &x)
		if err != nil {
			t.Fatal(err)
		}
		act([]eventlog.JobEvent{e}, nil)
	}
	act(d.queue.HoldTasks(d.now, alice, target(1), "why not"))
	act(d.queue.ReleaseTasks(d.now, alice, target(1)))
	first := assign(0)
	act(d.queue.HoldTasks(d.now, alice, target(0), ""))
	end(first, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	act(d.queue.ReleaseTasks(d.now, alice, target(0)))
	end(assign(0), eventlog.AttemptExit{Code: 3})
	act(d.queue.RemoveTasks(d.now, alice, target(1), "", false))
	want := "submitted 0 idle , submitted 1 idle , held 1 held , released 1 idle , started 0 running n, " +
		"ended 0 held n, released 0 idle n, started 0 running n, ended 0 completed n, removed 1 removed "
	if got := logged(live); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if live[0].Path != "/home/alice/2.log" || live[1].Tasks[0].Reason != "why not" {
		t.Errorf("got %+v", live)
	}
	events := []eventlog.JobEvent{}
	for _, e := range d.log {
		if e.Job == id.Seq {
			events = append(events, e)
		}
	}
	var kinds []string
	ReplayUserLog(d.queue, id.Seq, events, func(e UserLogEntry) {
		for _, task := range e.Tasks {
			kinds = append(kinds, fmt.Sprintf("%v %d", e.Type, task.Index))
		}
	})
	if got, want := strings.Join(kinds, ", "), "submitted 0, submitted 1, held 1, released 1, started 0, ended 0, "+
		"released 0, started 0, ended 0, removed 1"; got != want {
		t.Errorf("from the log it says %q, want %q", got, want)
	}
	if _, ok := UserLogOf(d.queue, &eventlog.JobEvent{Type: eventlog.Held, Job: plain.Seq}); ok {
		t.Error("a job without a user log has one")
	}
}
