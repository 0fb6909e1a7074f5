package queue

import (
	"bytes"
	"testing"
)

// TestDisplacedGoesFirst: of the tasks of one job, one that had to leave its machine, and whose work was saved, goes on before others begin.
func TestDisplacedGoesFirst(t *testing.T) {
	d := newDesk(t)
	limits := Limits{Secret: func() []byte { return bytes.Repeat([]byte{7}, 32) }}
	events, _, _, err := d.q.Submit(d.now, alice, "k", []Spec{{Ad: ad(t, `Checkpoint = "image"`), Count: 3}}, limits)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	a := d.start()
	began, ok := d.q.Start(d.now, a)
	kept, err := d.q.Keep(d.now, a, Image{Sequence: 1, Time: d.now.UnixNano(), Size: 100, Node: "n"})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	d.apply(began, kept)
	d.end(a, Exit{Cause: ByVacating, Signal: 15})
	var first, second *Request
	for _, id := range d.q.Requests() {
		r, _ := d.q.Request(id)
		if next, ok := d.q.Next(id); ok && next == a.Task {
			first = r
		} else {
			second = r
		}
	}
	if first == nil || second == nil || !first.Oldest.Before(second.Oldest) {
		t.Fatalf("displaced: %+v, the others: %+v", first, second)
	}
}
