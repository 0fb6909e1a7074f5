package jobs

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestNoteOfASuspendedTask: the last column says for whom it stands still.
func TestNoteOfASuspendedTask(t *testing.T) {
	for by, want := range map[string]string{
		"owner": "its owner uses n1", "user": "on n1, suspended by a user",
		"owner,user": "its owner uses n1, and a user has suspended it", "": "on n1",
	} {
		if got := jobNote(&wire.JobStatus{State: "suspended", Suspended: true, SuspendedBy: by, Node: "n1",
			Tasks: 1}); got != want {
			t.Errorf("by %q: got %q, want %q", by, got, want)
		}
	}
}

// TestNoteOfASilentNode: that nothing is heard of its node comes before where it is.
func TestNoteOfASilentNode(t *testing.T) {
	const silent = "no word from n1 for 3m"
	for _, state := range []string{"starting", "running", "suspended", "exiting"} {
		s := &wire.JobStatus{State: state, SuspendedBy: "owner", Node: "n1", Tasks: 1, Brief: silent,
			Reason: silent + "; if it stays silent the task is started again in 37m"}
		if got := jobNote(s); got != silent {
			t.Errorf("%s: got %q, want %q", state, got, silent)
		}
	}
}

// TestNoteOfALostTask checks that a list says so when the machine of a service's task
// does not answer.
func TestNoteOfALostTask(t *testing.T) {
	s := &wire.JobStatus{State: "running", Node: "n1", Tasks: 1, Reason: "lost: machine n1 does not answer",
		Service: &wire.ServiceHealth{State: "lost"}}
	if got, want := jobNote(s), s.Reason; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Brief = "no word from n1 for 40s"
	if got, want := jobNote(s), "lost: no word from n1 for 40s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
