package queue

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// TestQueueRequires checks that a queue and its job both restrict machines, and that they
// make other requests.
func TestQueueRequires(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "Requirements = TARGET.Fast")
	d.submit(1, `Requirements = TARGET.Fast; QueueRequirements = TARGET.Qlist == "own"`)
	d.submit(1, `QueueRequirements = TARGET.Qlist == "own"`)
	var got []string
	for _, id := range d.queue.Requests() {
		r, _ := d.queue.Request(id)
		ad, err := classad.Parse(r.Ad)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ad.Lookup(roost.AttrRequirements)
		got = append(got, e.String())
	}
	want := []string{`TARGET.Fast`, `(TARGET.Fast) && (TARGET.Qlist == "own")`, `(true) && (TARGET.Qlist == "own")`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
