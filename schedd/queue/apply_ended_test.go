package queue

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		name, ad string
		exit     eventlog.AttemptExit
		want     string
	}{
		{"success", "", eventlog.AttemptExit{}, "completed 1"},
		{"failure", "", eventlog.AttemptExit{Code: 3}, "completed 1 failed 1"},
		{"a retry left", "MaxRetries = 1", eventlog.AttemptExit{Code: 3}, "idle 1"},
		{"killed from outside", "", eventlog.AttemptExit{Signal: 9}, "completed 1 failed 1"},
		{"walltime", "", eventlog.AttemptExit{Cause: eventlog.CauseWalltime}, "completed 1 failed 1"},
		{"vacated", "", eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15}, "idle 1"},
		{"vacated, and not to be run twice", "Rerunnable = false", eventlog.AttemptExit{Cause: eventlog.CauseVacate,
			Signal: 15},
			"held 1"},
		{"no such program", "", eventlog.AttemptExit{Cause: eventlog.CauseLaunch, Reason: "exec: no such file"},
			"held 1"},
		{"no such program, of qsub", roost.AttrPBS + " = [ ]; MaxRetries = 1",
			eventlog.AttemptExit{Cause: eventlog.CauseLaunch, Reason: "exec: no such file"}, "completed 1 failed 1"},
		{"the machine's fault", "", eventlog.AttemptExit{Cause: eventlog.CauseMachine}, "idle 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestQueue(t)
			id := d.submit(1, c.ad)
			d.end(d.start(), c.exit)
			d.checkState(id, c.want)
		})
	}
}
