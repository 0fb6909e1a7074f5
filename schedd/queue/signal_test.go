package queue

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// A signal goes to the attempts that run, is in the log, and changes nothing.
func TestSignal(t *testing.T) {
	d := newDesk(t)
	id := d.submit(3, "")
	first, second := d.start(), d.start()
	e, _ := d.q.Start(d.now, first)
	d.apply(e) // the other is on its way, which is R in PBS as well
	events, to, err := d.q.Signal(d.now, alice, Target{Job: id}, "SIGUSR1")
	if err != nil || len(to) != 2 || to[0] != first || to[1] != second {
		t.Fatalf("got %v, %v", to, err)
	}
	d.apply(events...)
	d.want(id, "idle 1 starting 1 running 1")
	if last := d.log[len(d.log)-1]; last.What != Signalled || last.Reason != "SIGUSR1" || last.By != "alice" {
		t.Fatalf("the log has %+v", last)
	}
	if _, to, _ := d.q.Signal(d.now, alice, Target{Job: id, Ranges: []Range{{1, 2}}}, "SIGHUP"); len(to) != 1 || to[0] != second {
		t.Fatalf("of a range: got %v", to)
	}
	for name, c := range map[string]struct {
		who    Submitter
		target Target
		signal string
		want   error
	}{
		"bob's":             {bob, Target{Job: id}, "SIGTERM", roost.PermissionDenied},
		"a task that waits": {alice, Target{Job: id, Ranges: []Range{{2, 2}}}, "SIGTERM", roost.Conflict},
		"no signal, waits":  {alice, Target{Job: id, Ranges: []Range{{2, 2}}}, "", roost.Conflict},
		"no signal":         {alice, Target{Job: id}, "", ErrSignal},
		"no such task":      {alice, Target{Job: id, Ranges: []Range{{3, 3}}}, "SIGTERM", roost.NotFound},
	} {
		if _, _, err := d.q.Signal(d.now, c.who, c.target, c.signal); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	frozen, _ := d.q.Suspend(d.now, alice, Target{Job: id, Ranges: []Range{{0, 0}}}, "")
	d.apply(frozen...)
	if _, to, _ := d.q.Signal(d.now, alice, Target{Job: id}, "SIGHUP"); len(to) != 1 || to[0] != second {
		t.Errorf("beside one that is frozen: got %v", to)
	}
}
