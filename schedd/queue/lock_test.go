package queue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestLock checks that an owner cannot release what an administrator has locked. That
// holds in any state and after a restart, and nobody else can lock.
func TestLock(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, "MaxRetries = 0")
	all, first := TaskSelector{Job: id}, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}
	did := func(events []eventlog.JobEvent, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	refused := func(want error, events []eventlog.JobEvent, err error) {
		t.Helper()
		if !errors.Is(err, want) || len(events) > 0 {
			t.Fatalf("got %v and %v, want %v", events, err, want)
		}
	}
	free := func(what string) { // whether its owner can release anything
		t.Helper()
		events, err := d.queue.ReleaseTasks(d.now, alice, all)
		if refused(roost.PermissionDenied, events, err); !strings.Contains(err.Error(), "root holds it") {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := d.queue.LockTasks(d.now, alice, all, "")
	refused(roost.PermissionDenied, nil, err)
	_, err = d.queue.UnlockTasks(d.now, alice, all)
	refused(roost.PermissionDenied, nil, err)

	a := d.start()
	// one runs, one is held by its user, and one waits
	did(d.queue.HoldTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 1, Last: 1}}}, ""))
	did(d.queue.LockTasks(d.now, root, all, "it fills the disk"))
	_, err = d.queue.LockTasks(d.now, root, all, "")
	refused(roost.Conflict, nil, err)
	free("while one runs")
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
	d.checkState(id, "held 3")
	free("all held")
	d.queue = d.restoredCopy()
	free("restored")
	if s, _ := d.queue.Status(id.Seq); !s.Locked || s.Reason != "it fills the disk" {
		t.Fatalf("its status is %+v", s)
	}

	did(d.queue.UnlockTasks(d.now, root, first))
	d.checkState(id, "held 2 idle 1")
	did(d.queue.HoldTasks(d.now, alice, first, ""))
	did(d.queue.ReleaseTasks(d.now, alice, first)) // her own hold
	d.checkState(id, "held 2 idle 1")
	did(d.queue.ReleaseTasks(d.now, root, all))
	d.checkState(id, "idle 3")
}

// holdTasks holds tasks as their user does, or as who administers.
func (d *testQueue) holdTasks(rng *rand.Rand, t TaskSelector) (events []eventlog.JobEvent) {
	if rng.IntN(3) == 0 {
		events, _ = d.queue.LockTasks(d.now, root, t, "")
	} else {
		events, _ = d.queue.HoldTasks(d.now, alice, t, "")
	}
	return events
}
