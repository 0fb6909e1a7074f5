package queue

import (
	"testing"

	"github.com/roost-batch/roost"
)

// A job that waits for two others is neither dropped nor freed when the first of them has ended and left the queue.
func TestWaitOutlivesPurge(t *testing.T) {
	for _, c := range []struct {
		name, waits string
		first, last Exit
		want        string
	}{
		{"both succeed", `"afterok:1", "afterok:2"`, Exit{}, Exit{}, "idle 1"},
		{"the second fails", `"afterok:1", "afterok:2"`, Exit{}, Exit{Code: 1}, "removed 1"},
		{"the first fails as wanted", `"afternotok:1", "afterany:2"`, Exit{Code: 1}, Exit{}, "idle 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			first, second := d.submit(1, ""), d.submit(1, "")
			id := d.submit(1, "DependsOn = {"+c.waits+"}")
			d.end(d.start(), c.first)
			e, ok := d.q.Purge(d.now, first.Seq)
			if !ok {
				t.Fatal("the first job is not final")
			}
			d.apply(e)
			d.apply(d.q.Consequences(d.now)...)
			d.want(id, "blocked 1")
			d.q = d.copied() // a restart
			d.apply(d.q.Consequences(d.now)...)
			d.want(id, "blocked 1")
			a := d.start()
			if a.Task.Job != second {
				t.Fatalf("%v was started", a)
			}
			d.end(a, c.last)
			d.want(id, c.want)
		})
	}
}

// The snapshot of a purged job is to be deleted, so it counts as unsaved.
func TestPurgedIsUnsaved(t *testing.T) {
	d := newDesk(t)
	id := d.submit(1, "")
	d.end(d.start(), Exit{})
	d.q.Unsaved()
	e, _ := d.q.Purge(d.now, id.Seq)
	d.apply(e)
	if got := d.q.Unsaved(); len(got) != 1 || got[0] != id.Seq {
		t.Fatalf("got %v, want %d", got, id.Seq)
	}
}

// The tasks of a job with a limit are counted as ready only so far as they could start, whatever different requests they make.
func TestReadyWithinLimit(t *testing.T) {
	d := newDesk(t)
	spec := Spec{Ad: ad(t, "MaxRunning = 3"), Count: 12, Columns: []Column{
		{roost.AttrRequestMemory, []string{"1048576", "1048576", "1048576", "1048576", "1048576", "1048576", "2097152", "2097152", "2097152", "2097152", "2097152", "2097152"}},
		{roost.AttrWalltime, []string{"10", "20", "10", "20", "10", "20", "10", "20", "10", "20", "10", "20"}}, // of the same request
	}}
	events, _, _, err := d.q.Submit(d.now, alice, "k", []Spec{spec}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	for room := 3; room >= 0; room-- {
		for _, id := range d.q.Requests() {
			if r, _ := d.q.Request(id); r.Ready != room {
				t.Errorf("request %d has %d tasks ready, want %d", id, r.Ready, room)
			}
		}
		if room > 0 {
			d.start()
		}
	}
}
