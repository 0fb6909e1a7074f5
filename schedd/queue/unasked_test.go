package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
)

// TestUnasked holds that a job that was taken while nobody could be asked counts for no quota until it is admitted; that one that is refused is held with
// the reason, and asked about again when it is released; and that all that survives a restart.
func TestUnasked(t *testing.T) {
	ad, err := classad.Parse(`[Cmd = "/bin/true"; RequestCpus = 2]`)
	if err != nil {
		t.Fatal(err)
	}
	now, who := time.Unix(1000, 0), Submitter{User: "ann", UID: 1000, GID: 1000, Host: "s"}
	q := New("s")
	do := func(events []Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			kept, err := DecodeEvent(AppendEvent(nil, &events[i]))
			if err != nil {
				t.Fatal(err)
			}
			q.Apply(kept)
		}
	}
	submit := func(key string, unasked bool) {
		t.Helper()
		events, _, _, err := q.Submit(now, who, key, []Spec{{Ad: ad, Count: 3, Unasked: unasked}}, Limits{})
		do(events, err)
	}
	submit("asked", false)
	submit("unasked", true)
	payer, d, ok := q.AskLater(2)
	if !ok || d.Tasks != 3 || d.CPU != 6000 || !slices.Equal(q.Unasked(), []uint64{2}) {
		t.Fatalf("of %v asks for %v; unasked are %v", payer, d, q.Unasked())
	}
	if got := q.Demand(payer); got.Tasks != 3 {
		t.Errorf("%d tasks count, of which nobody has allowed some", got.Tasks)
	}
	do(q.Overdraw(now, 2, "quota of ann: too much"), nil)
	kept, _ := q.Snapshot(2)
	q = New("s")
	if err := q.Restore(kept); err != nil {
		t.Fatal(err)
	}
	st, _ := q.Status(2)
	if !WasRefused(st.Reason) || !strings.Contains(st.Reason, "quota of ann: too much") || len(q.Unasked()) > 0 || len(q.Overdraw(now, 2, "again")) > 0 {
		t.Errorf("refused it is held for %q, and %v are to be asked about", st.Reason, q.Unasked())
	}
	do(q.Release(now, who, Target{Job: st.Job}))
	if !slices.Equal(q.Unasked(), []uint64{2}) {
		t.Errorf("released, %v are to be asked about", q.Unasked())
	}
	do(q.Admit(now, 2), nil)
	if got := q.Demand(payer); got.Tasks != 3 || len(q.Unasked()) > 0 || q.Admit(now, 2) != nil {
		t.Errorf("admitted, %d tasks count, and %v are to be asked about", got.Tasks, q.Unasked())
	}
	kept, _ = q.Snapshot(2)
	q = New("s")
	if err := q.Restore(kept); err != nil || len(q.Unasked()) > 0 {
		t.Errorf("after a restart %v are to be asked about, %v", q.Unasked(), err)
	}
}
