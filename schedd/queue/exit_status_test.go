package queue

import (
	"testing"

	"github.com/roost-batch/roost"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		name, ad string
		exit     AttemptExit
		want     string
	}{
		{"success", "", AttemptExit{}, "completed 1"},
		{"failure", "", AttemptExit{Code: 3}, "completed 1 failed 1"},
		{"a retry left", "MaxRetries = 1", AttemptExit{Code: 3}, "idle 1"},
		{"killed from outside", "", AttemptExit{Signal: 9}, "completed 1 failed 1"},
		{"walltime", "", AttemptExit{Cause: CauseWalltime}, "completed 1 failed 1"},
		{"vacated", "", AttemptExit{Cause: CauseVacate, Signal: 15}, "idle 1"},
		{"vacated, and not to be run twice", "Rerunnable = false", AttemptExit{Cause: CauseVacate, Signal: 15},
			"held 1"},
		{"no such program", "", AttemptExit{Cause: CauseLaunch, Reason: "exec: no such file"}, "held 1"},
		{"no such program, of qsub", roost.AttrPBS + " = [ ]; MaxRetries = 1",
			AttemptExit{Cause: CauseLaunch, Reason: "exec: no such file"}, "completed 1 failed 1"},
		{"the machine's fault", "", AttemptExit{Cause: CauseMachine}, "idle 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestQueue(t)
			id := d.submit(1, c.ad)
			d.end(d.start(), c.exit)
			d.checkState(id, c.want)
		})
	}
}
