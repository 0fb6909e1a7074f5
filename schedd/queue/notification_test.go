package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// notifications tells what is to be told of the events that a desk has logged.
func notifications(t *testing.T, live func(d *testQueue)) string {
	d := newTestQueue(t)
	var reported []string
	live(d)
	replay := New("h")
	for _, e := range d.log {
		replay.Apply(e)
		if n, ok := replay.Notification(e); ok {
			line := fmt.Sprintf("%v %s", n.What, n.ID)
			if n.Exit != nil {
				line += fmt.Sprintf(" %d", n.Exit.Status())
			}
			if n.Tasks > 0 {
				line += fmt.Sprintf(" %d/%d/%d", n.Tasks, n.Failed, n.Removed)
			}
			if n.Reason != "" {
				line += " (" + n.Reason + ")"
			}
			reported = append(reported, line)
		}
	}
	return strings.Join(reported, "; ")
}

// TestNotificationQueueName checks the queue in notifications of a job that is in none.
// It is the name that qstat shows.
func TestNotificationQueueName(t *testing.T) {
	for ad, want := range map[string]string{`MailPoints = "e"`: roost.DefaultQueueName,
		`MailPoints = "e"; Queue = "long"`: "long"} {
		d := newTestQueue(t)
		d.submit(1, ad)
		a := d.start()
		if p, err := d.queue.Program(a); err != nil || p.Queue != want {
			t.Errorf("%s: a prologue is told of queue %q, want %q (%v)", ad, p.Queue, want, err)
		}
		d.end(a, eventlog.AttemptExit{})
		var reported string
		for _, e := range d.log {
			if n, ok := d.queue.Notification(e); ok {
				reported = n.Queue
			}
		}
		if reported != want {
			t.Errorf("%s: its owner is told of queue %q, want %q", ad, reported, want)
		}
	}
}

// TestNotifications checks which events -m b, e and a report. An array is reported once,
// or with j for each of its tasks.
func TestNotifications(t *testing.T) {
	run := func(points string, count int, exits ...eventlog.AttemptExit) func(d *testQueue) {
		return func(d *testQueue) {
			src := "MailPoints = \"" + points + "\""
			if count > 1 {
				src += "; Array = true; ArrayIndexes = \"10-" + fmt.Sprint(9+count) + "\""
			}
			d.submit(count, src)
			for _, x := range exits {
				a := d.start()
				if e, ok := d.queue.RecordStarted(d.now, a); ok {
					d.apply(e)
				}
				d.end(a, x)
			}
		}
	}
	ok, bad := eventlog.AttemptExit{}, eventlog.AttemptExit{Code: 3}
	long := eventlog.AttemptExit{Cause: eventlog.CauseWalltime, Signal: 15, Reason: "walltime of 1s exceeded"}
	for _, test := range []struct {
		name string
		live func(d *testQueue)
		want string
	}{
		{"all", run("abe", 1, ok), "begun 1.h; ended 1.h 0"},
		{"none", run("n", 1, ok), ""},
		{"failed", run("e", 1, bad), "ended 1.h 3"},
		{"begun only", run("b", 1, bad), "begun 1.h"},
		{"aborted", run("a", 1, long), "aborted 1.h -29 (walltime of 1s exceeded)"},
		{"not aborted", run("a", 1, bad), ""},
		{"run again", run("ae", 1, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Reason: "drained"}, ok),
			"ended 1.h 0"},
		{"never begun", run("a", 1, eventlog.AttemptExit{Cause: eventlog.CauseLaunch, Reason: "exec: no such program"}),
			"aborted 1.h -1 (exec: no such program)"},
		{"array", run("abe", 3, ok, bad, ok), "begun 1[].h; aborted 1[].h 3/1/0"},
		{"good array", run("be", 3, ok, ok, ok), "begun 1[].h; ended 1[].h 3/0/0"},
		{"each", run("bej", 2, ok, bad), "begun 1[10].h; ended 1[10].h 0; begun 1[11].h; ended 1[11].h 3"},
		{"deleted by its owner", func(d *testQueue) {
			id := d.submit(1, "MailPoints = \"abe\"")
			d.deleteTasks(alice, id)
		}, ""},
		{"deleted by another", func(d *testQueue) {
			id := d.submit(1, "MailPoints = \"abe\"")
			d.deleteTasks(CallerIdentity{User: "root", Admin: true}, id)
		}, "aborted 1.h (deleted by root)"},
		{"array deleted", func(d *testQueue) {
			id := d.submit(2, "MailPoints = \"e\"; Array = true")
			d.deleteTasks(CallerIdentity{User: "root", Admin: true}, id)
		}, "aborted 1[].h 2/0/2"},
	} {
		if got := notifications(t, test.live); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func (d *testQueue) deleteTasks(who CallerIdentity, id roost.JobID) {
	d.Helper()
	events, err := d.queue.RemoveTasks(d.now, who, TaskSelector{Job: id}, "", false)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}
