package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// notices tells what is to be told of the events that a desk has logged.
func notices(t *testing.T, live func(d *desk)) string {
	d := newDesk(t)
	var told []string
	live(d)
	replay := New("h")
	for _, e := range d.log {
		replay.Apply(e)
		if n, ok := replay.Notice(e); ok {
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
			told = append(told, line)
		}
	}
	return strings.Join(told, "; ")
}

// TestQueueToldOf: people and the machines' scripts are told the queue of a job that is in none by the name that qstat shows.
func TestQueueToldOf(t *testing.T) {
	for ad, want := range map[string]string{`MailPoints = "e"`: roost.UsualQueue, `MailPoints = "e"; Queue = "long"`: "long"} {
		d := newDesk(t)
		d.submit(1, ad)
		a := d.start()
		if p, err := d.q.Launch(a); err != nil || p.Queue != want {
			t.Errorf("%s: a prologue is told of queue %q, want %q (%v)", ad, p.Queue, want, err)
		}
		d.end(a, Exit{})
		var told string
		for _, e := range d.log {
			if n, ok := d.q.Notice(e); ok {
				told = n.Queue
			}
		}
		if told != want {
			t.Errorf("%s: its owner is told of queue %q, want %q", ad, told, want)
		}
	}
}

// TestNotices: -m b, e and a each tell of what they are for, of an array once, or with j of each of its tasks.
func TestNotices(t *testing.T) {
	run := func(points string, count int, exits ...Exit) func(d *desk) {
		return func(d *desk) {
			src := "MailPoints = \"" + points + "\""
			if count > 1 {
				src += "; Array = true; ArrayIndexes = \"10-" + fmt.Sprint(9+count) + "\""
			}
			d.submit(count, src)
			for _, x := range exits {
				a := d.start()
				if e, ok := d.q.Start(d.now, a); ok {
					d.apply(e)
				}
				d.end(a, x)
			}
		}
	}
	ok, bad := Exit{}, Exit{Code: 3}
	long := Exit{Cause: ByWalltime, Signal: 15, Reason: "walltime of 1s exceeded"}
	for _, test := range []struct {
		name string
		live func(d *desk)
		want string
	}{
		{"all", run("abe", 1, ok), "begun 1.h; ended 1.h 0"},
		{"none", run("n", 1, ok), ""},
		{"failed", run("e", 1, bad), "ended 1.h 3"},
		{"begun only", run("b", 1, bad), "begun 1.h"},
		{"aborted", run("a", 1, long), "aborted 1.h -29 (walltime of 1s exceeded)"},
		{"not aborted", run("a", 1, bad), ""},
		{"run again", run("ae", 1, Exit{Cause: ByVacating, Reason: "drained"}, ok), "ended 1.h 0"},
		{"never begun", run("a", 1, Exit{Cause: ByLaunch, Reason: "exec: no such program"}), "aborted 1.h -1 (exec: no such program)"},
		{"array", run("abe", 3, ok, bad, ok), "begun 1[].h; aborted 1[].h 3/1/0"},
		{"good array", run("be", 3, ok, ok, ok), "begun 1[].h; ended 1[].h 3/0/0"},
		{"each", run("bej", 2, ok, bad), "begun 1[10].h; ended 1[10].h 0; begun 1[11].h; ended 1[11].h 3"},
		{"deleted by its owner", func(d *desk) {
			id := d.submit(1, "MailPoints = \"abe\"")
			d.delete(alice, id)
		}, ""},
		{"deleted by another", func(d *desk) {
			id := d.submit(1, "MailPoints = \"abe\"")
			d.delete(Submitter{User: "root", Admin: true}, id)
		}, "aborted 1.h (deleted by root)"},
		{"array deleted", func(d *desk) {
			id := d.submit(2, "MailPoints = \"e\"; Array = true")
			d.delete(Submitter{User: "root", Admin: true}, id)
		}, "aborted 1[].h 2/0/2"},
	} {
		if got := notices(t, test.live); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func (d *desk) delete(who Submitter, id roost.JobID) {
	d.Helper()
	events, err := d.q.Remove(d.now, who, Target{Job: id}, "", false)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}
