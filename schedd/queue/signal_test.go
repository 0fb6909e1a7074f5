package queue

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestSignal checks that a signal goes to the attempts that run, is in the log, and
// changes nothing.
func TestSignal(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, "")
	first, second := d.start(), d.start()
	e, _ := d.queue.RecordStarted(d.now, first)
	d.apply(e) // the other is on its way, which is R in PBS as well
	events, to, err := d.queue.SignalTasks(d.now, alice, TaskSelector{Job: id}, "SIGUSR1")
	if err != nil || len(to) != 2 || to[0] != first || to[1] != second {
		t.Fatalf("got %v, %v", to, err)
	}
	d.apply(events...)
	d.checkState(id, "idle 1 starting 1 running 1")
	if last := d.log[len(d.log)-1]; last.Type != eventlog.Signalled || last.Reason != "SIGUSR1" ||
		last.RequestedBy != "alice" {
		t.Fatalf("the log has %+v", last)
	}
	if _, to, _ := d.queue.SignalTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 1,
		Last: 2}}},
		"SIGHUP"); len(to) != 1 || to[0] != second {
		t.Fatalf("of a range: got %v", to)
	}
	for name, c := range map[string]struct {
		who    CallerIdentity
		target TaskSelector
		signal string
		want   error
	}{
		"bob's": {bob, TaskSelector{Job: id}, "SIGTERM", roost.PermissionDenied},
		"a task that waits": {alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 2, Last: 2}}},
			"SIGTERM", roost.Conflict},
		"no signal, waits": {alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 2, Last: 2}}}, "",
			roost.Conflict},
		"no signal": {alice, TaskSelector{Job: id}, "", ErrSignal},
		"no such task": {alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 3, Last: 3}}},
			"SIGTERM", roost.NotFound},
	} {
		if _, _, err := d.queue.SignalTasks(d.now, c.who, c.target, c.signal); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	frozen, _ := d.queue.SuspendTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 0,
		Last: 0}}}, "")
	d.apply(frozen...)
	if _, to, _ := d.queue.SignalTasks(d.now, alice, TaskSelector{Job: id}, "SIGHUP"); len(to) != 1 || to[0] != second {
		t.Errorf("beside one that is frozen: got %v", to)
	}
}
