package queue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestLock holds that what an administrator holds with a lock its owner cannot let go on, whatever state it was in, also after a restart; and nobody else locks.
func TestLock(t *testing.T) {
	d := newDesk(t)
	id := d.submit(3, "MaxRetries = 0")
	all, first := Target{Job: id}, Target{Job: id, Ranges: []Range{{0, 0}}}
	did := func(events []Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	refused := func(want error, events []Event, err error) {
		t.Helper()
		if !errors.Is(err, want) || len(events) > 0 {
			t.Fatalf("got %v and %v, want %v", events, err, want)
		}
	}
	free := func(what string) { // whether its owner can release anything
		t.Helper()
		events, err := d.q.Release(d.now, alice, all)
		if refused(roost.PermissionDenied, events, err); !strings.Contains(err.Error(), "root holds it") {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := d.q.Lock(d.now, alice, all, "")
	refused(roost.PermissionDenied, nil, err)
	_, err = d.q.Unlock(d.now, alice, all)
	refused(roost.PermissionDenied, nil, err)

	a := d.start()
	did(d.q.Hold(d.now, alice, Target{Job: id, Ranges: []Range{{1, 1}}}, "")) // one runs, one is held by its user, and one waits
	did(d.q.Lock(d.now, root, all, "it fills the disk"))
	_, err = d.q.Lock(d.now, root, all, "")
	refused(roost.Conflict, nil, err)
	free("while one runs")
	d.end(a, Exit{Cause: ByVacating})
	d.want(id, "held 3")
	free("all held")
	d.q = d.copied()
	free("restored")
	if s, _ := d.q.Status(id.Seq); !s.Locked || s.Reason != "it fills the disk" {
		t.Fatalf("its status is %+v", s)
	}

	did(d.q.Unlock(d.now, root, first))
	d.want(id, "held 2 idle 1")
	did(d.q.Hold(d.now, alice, first, ""))
	did(d.q.Release(d.now, alice, first)) // her own hold
	d.want(id, "held 2 idle 1")
	did(d.q.Release(d.now, root, all))
	d.want(id, "idle 3")
}

// hold holds tasks as their user does, or as who administers.
func (d *desk) hold(rng *rand.Rand, t Target) (events []Event) {
	if rng.IntN(3) == 0 {
		events, _ = d.q.Lock(d.now, root, t, "")
	} else {
		events, _ = d.q.Hold(d.now, alice, t, "")
	}
	return events
}
