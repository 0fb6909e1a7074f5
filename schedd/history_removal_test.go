package schedd

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestRemovalFromHistory checks that ended jobs leave the history only by a removal that
// asks for it. They leave it also when they have only just ended. Single tasks cannot
// leave it, and a restart brings nothing back.
func TestRemovalFromHistory(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a", "b")
	p.start()
	known := func(id string) int {
		return len(p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, History: true}))
	}
	remove := func(id string) roost.ErrorKind {
		r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_REMOVE, Ended: true,
			Selection: &wire.Selection{Selectors: []string{id}}})
		if (r.GetError() == "") != (r.GetKind() == 0) {
			t.Errorf("%s: %v", id, r)
		}
		return roost.ErrorKind(r.GetKind())
	}
	if r := p.act(wire.ActRequest_REMOVE, "1"); roost.ErrorKind(r.GetKind()) != roost.Finished || known("1") != 1 {
		t.Errorf("a removal that does not say so: %v", r)
	}
	if kind := remove("1[0]"); kind == 0 || known("1") != 1 {
		t.Errorf("a task: %v", kind)
	}
	if kind := remove("1"); kind != 0 {
		t.Errorf("it stays: %v", kind)
	}
	if kind := remove("1"); kind != roost.NotFound {
		t.Errorf("a second time: %v", kind)
	}
	if r := p.act(wire.ActRequest_RETRY, "2"); r.GetError() != "" { // it is in the queue again
		t.Fatal(r)
	}
	if kind := remove("2"); kind != 0 || known("2") != 1 {
		t.Errorf("what has not ended is removed and nothing more: %v", kind)
	}
	if kind := remove("2"); kind != 0 {
		t.Errorf("it has only just ended: %v", kind)
	}
	p.stop()
	p.start()
	for _, id := range []string{"1", "2"} {
		if kind := remove(id); kind != roost.NotFound {
			t.Errorf("after a restart %s is known: %v", id, kind)
		}
	}
}
