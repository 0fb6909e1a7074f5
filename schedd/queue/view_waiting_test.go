package queue

import "testing"

// TestWaitingIndexes checks which tasks are shown as waiting, by the array's own indexes.
// A job also says whether it waits for its start time alone.
func TestWaitingIndexes(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(6, `ArrayIndexes = "10-20:5,31-33"`)
	for _, want := range []string{"10-20:5,31-33", "15-20:5,31-33", "20,31-33"} {
		if got := d.queue.WaitingIndexes(id.Seq); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		d.start()
	}
	if got := d.queue.WaitingIndexes(77); got != "" {
		t.Errorf("of no job: got %q", got)
	}
	for state, want := range map[string]bool{"W": true, "H": false, "Q": false} {
		if st, _ := d.queue.Status(d.inState(state).Seq); st.WaitsForTimeOnly != want {
			t.Errorf("in state %s: got %v, want %v", state, st.WaitsForTimeOnly, want)
		}
	}
}
