package queue

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// TestRelease holds that what an administrator holds of a user's, idle or running, that user does not release; and that he does what he, or Roost, has held.
func TestRelease(t *testing.T) {
	root := Submitter{User: "root", Admin: true}
	for name, test := range map[string]struct {
		by      Submitter
		started bool
		want    error
	}{
		"own":                   {alice, false, nil},
		"own, running":          {alice, true, nil},
		"an admin's":            {root, false, roost.PermissionDenied},
		"an admin's, running":   {root, true, roost.PermissionDenied},
		"nobody's that we know": {Submitter{User: "", Admin: true}, false, nil},
	} {
		d := newDesk(t)
		target := Target{Job: d.submit(3, "")}
		if test.started {
			d.start()
		}
		held, err := d.q.Hold(d.now, test.by, target, "why")
		if err != nil {
			t.Fatal(err)
		}
		d.apply(held...)
		d.q = d.copied()
		if _, err := d.q.Release(d.now, alice, target); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		events, err := d.q.Release(d.now, root, target)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
		if held, _ := d.q.Hold(d.now, alice, target, ""); len(held) == 0 {
			t.Errorf("%s: it is held still", name)
		}
	}
}
