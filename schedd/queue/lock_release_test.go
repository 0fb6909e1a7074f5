package queue

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// TestRelease checks that a user cannot release what an administrator holds, idle or
// running. The user can release what the user or Roost has held.
func TestRelease(t *testing.T) {
	root := CallerIdentity{User: "root", Admin: true}
	for name, test := range map[string]struct {
		by      CallerIdentity
		started bool
		want    error
	}{
		"own":                   {alice, false, nil},
		"own, running":          {alice, true, nil},
		"an admin's":            {root, false, roost.PermissionDenied},
		"an admin's, running":   {root, true, roost.PermissionDenied},
		"nobody's that we know": {CallerIdentity{User: "", Admin: true}, false, nil},
	} {
		d := newTestQueue(t)
		target := TaskSelector{Job: d.submit(3, "")}
		if test.started {
			d.start()
		}
		held, err := d.queue.HoldTasks(d.now, test.by, target, "why")
		if err != nil {
			t.Fatal(err)
		}
		d.apply(held...)
		d.queue = d.restoredCopy()
		if _, err := d.queue.ReleaseTasks(d.now, alice, target); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		events, err := d.queue.ReleaseTasks(d.now, root, target)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
		if held, _ := d.queue.HoldTasks(d.now, alice, target, ""); len(held) == 0 {
			t.Errorf("%s: it is held still", name)
		}
	}
}
