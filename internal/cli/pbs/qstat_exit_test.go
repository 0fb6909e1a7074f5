package pbs

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestShownExitStatus holds that only a job that has ended has an Exit_status, because
// clients take it for the end. One that was deleted before it ran has that of one deleted
// while it runs.
func TestShownExitStatus(t *testing.T) {
	for _, c := range []struct {
		name, state string
		exit        *wire.ExitStatus
		want        string
	}{
		{"succeeded", "completed", &wire.ExitStatus{}, "0"},
		{"failed", "completed", &wire.ExitStatus{Code: 3}, "3"},
		{"brings its files back", "exiting", &wire.ExitStatus{Code: 3}, "3"},
		{"refused by a prologue", "completed", &wire.ExitStatus{Cause: wire.Cause_CAUSE_REFUSED, Code: 1}, "-2"},
		{"is run again after its prologue has failed", "idle", &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE}, ""},
		{"is held after that", "held", &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE}, ""},
		{"was deleted then", "removed", &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE}, "271"},
		{"had to leave its machine", "idle", &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED, Signal: 15}, ""},
		{"goes on elsewhere", "running", &wire.ExitStatus{Cause: wire.Cause_CAUSE_PREEMPTED, Signal: 15}, ""},
		{"was deleted while it ran", "removed", &wire.ExitStatus{Cause: wire.Cause_CAUSE_REMOVED, Signal: 15}, "271"},
		{"was deleted before", "removed", nil, "271"},
	} {
		if got := shownExitStatus(&wire.JobStatus{State: c.state, Tasks: 1, Exit: c.exit}); got != c.want {
			t.Errorf("one that %s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNowhere holds that a job that was spoiled by a machine and waits again is not shown
// to be there.
func TestNowhere(t *testing.T) {
	for state, want := range map[string]string{"idle": "", "held": "", "blocked": "", "assigned": "c1/0",
		"running": "c1/0", "suspended": "c1/0", "completed": "c1/0"} {
		s := &wire.JobStatus{State: state, Tasks: 1, Node: "c1", Request: &wire.Resources{MilliCpu: 1000}}
		if got := execHost(s); got != want {
			t.Errorf("exec_host of a job that is %s: got %q, want %q", state, got, want)
		}
		if got := execVnode(s) != ""; got != (want != "") {
			t.Errorf("exec_vnode of a job that is %s: got %q", state, execVnode(s))
		}
	}
}
