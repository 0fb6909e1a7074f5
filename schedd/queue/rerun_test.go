package queue

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestRerun checks that a rerun task is killed at once and loses its checkpoints. It
// starts only when its attempt has ended; replay asks for the same.
func TestRerun(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "")
	first := d.start()
	retain, err := d.queue.RecordCheckpoint(d.now, first, eventlog.CheckpointImage{Sequence: 1,
		CPUUsage: eventlog.CPUUsage{Wall: 1}})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(retain)
	whole := TaskSelector{Job: id}
	events, err := d.queue.RerunTasks(d.now, alice, whole, false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	v := d.queue.TakeVacates()
	if len(v) != 1 || v[0].Attempt != first || !v[0].Fast || v[0].Checkpoint {
		t.Fatalf("got %+v, want the attempt killed", v)
	}
	d.checkState(id, "idle 1 starting 1")
	if again := d.restoredCopy().TakeVacates(); len(again) != 1 || again[0] != v[0] {
		t.Fatalf("after a restart it asks for %+v, want %+v", again, v)
	}
	events, _ = d.queue.RerunTasks(d.now, alice, whole, false)
	d.apply(events...)
	if v := d.queue.TakeVacates(); len(v) != 0 {
		t.Fatalf("asked twice, it is killed twice: %v", v)
	}
	d.end(first, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 9})
	d.checkState(id, "idle 2")
	for range 2 {
		if a := d.start(); a.Task == first.Task && a.Attempt != 2 {
			t.Fatalf("got %v, want attempt 2", a)
		}
	}
	if d.queue.HasImages(id.Seq) {
		t.Fatal("its checkpoint is still there")
	}
}

// TestRerunMeetsOthers checks what else happens before a rerun task is killed. A program
// that ends has ended; a hold holds, and a removal removes.
func TestRerunMeetsOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		exit eventlog.AttemptExit
		also func(*testQueue, TaskSelector) ([]eventlog.JobEvent, error)
		want string
	}{
		{"it ends", eventlog.AttemptExit{}, nil, "completed 1"},
		{"it fails", eventlog.AttemptExit{Code: 2}, nil, "completed 1 failed 1"},
		{"it is lost", eventlog.AttemptExit{Cause: eventlog.CauseMachine}, nil, "idle 1"},
		{"held", eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 9},
			func(d *testQueue, t TaskSelector) ([]eventlog.JobEvent, error) {
				return d.queue.HoldTasks(d.now, alice, t, "")
			}, "held 1"},
		{"removed", eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 9},
			func(d *testQueue, t TaskSelector) ([]eventlog.JobEvent, error) {
				return d.queue.RemoveTasks(d.now, alice, t, "", false)
			}, "removed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestQueue(t)
			id := d.submit(1, "")
			a := d.start()
			events, err := d.queue.RerunTasks(d.now, alice, TaskSelector{Job: id}, false)
			if err != nil {
				t.Fatal(err)
			}
			d.apply(events...)
			if c.also != nil {
				if events, err = c.also(d, TaskSelector{Job: id}); err != nil {
					t.Fatal(err)
				}
				d.apply(events...)
			}
			d.end(a, c.exit)
			d.checkState(id, c.want)
		})
	}
}

func TestRerunRefused(t *testing.T) {
	d := newTestQueue(t)
	waits, once := d.submit(1, "HoldOnSubmit = true"), d.submit(1, "Rerunnable = false")
	d.start()
	leaves := d.submit(1, "")
	d.start()
	gone, _ := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: leaves}, "", false)
	d.apply(gone...)
	admin := CallerIdentity{User: "root", Admin: true}
	for name, c := range map[string]struct {
		who   CallerIdentity
		job   roost.JobID
		force bool
		want  error
	}{
		"bob's":       {bob, once, false, roost.PermissionDenied},
		"waits":       {alice, waits, false, roost.Conflict},
		"once":        {alice, once, false, ErrNotRerunnable},
		"on its way":  {alice, leaves, false, roost.Conflict},
		"forced":      {alice, once, true, roost.PermissionDenied},
		"also forced": {admin, once, true, ErrNotRerunnable},
		"unknown":     {alice, roost.JobID{Seq: 99, Host: "h"}, false, roost.NotFound},
	} {
		if _, err := d.queue.RerunTasks(d.now, c.who, TaskSelector{Job: c.job}, c.force); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestRestartsWhenLost checks that what is said of a task on a silent node comes true
// when the attempt is lost.
func TestRestartsWhenLost(t *testing.T) {
	for _, c := range []struct {
		name, ad string
		also     func(*testQueue, roost.JobID)
		want     bool
		state    string
	}{
		{"any job", "", nil, true, "idle 1"},
		{"one that may not run twice", "Rerunnable = false", nil, false, "held 1"},
		{"one that is being removed", "", func(d *testQueue, id roost.JobID) {
			gone, _ := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id}, "", false)
			d.apply(gone...)
		}, false, "removed 1"},
	} {
		d := newTestQueue(t)
		id := d.submit(1, c.ad)
		if d.queue.RestartsWhenLost(id.Task(0)) {
			t.Errorf("%s: it has no attempt yet", c.name)
		}
		a := d.start()
		if c.also != nil {
			c.also(d, id)
		}
		if got := d.queue.RestartsWhenLost(id.Task(0)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		e, _ := d.queue.RecordLost(d.now, a, "its node was away for longer than the lease")
		d.apply(e)
		d.checkState(id, c.state)
	}
}
