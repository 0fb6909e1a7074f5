package queue

import (
	"testing"

	"github.com/roost-batch/roost"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name, ad string
		exit     Exit
		want     string
	}{
		{"success", "", Exit{}, "completed 1"},
		{"failure", "", Exit{Code: 3}, "completed 1 failed 1"},
		{"a retry left", "MaxRetries = 1", Exit{Code: 3}, "idle 1"},
		{"killed from outside", "", Exit{Signal: 9}, "completed 1 failed 1"},
		{"walltime", "", Exit{Cause: ByWalltime}, "completed 1 failed 1"},
		{"vacated", "", Exit{Cause: ByVacating, Signal: 15}, "idle 1"},
		{"vacated, and not to be run twice", "Rerunnable = false", Exit{Cause: ByVacating, Signal: 15}, "held 1"},
		{"no such program", "", Exit{Cause: ByLaunch, Reason: "exec: no such file"}, "held 1"},
		{"no such program, of qsub", roost.AttrPBS + " = [ ]; MaxRetries = 1", Exit{Cause: ByLaunch, Reason: "exec: no such file"}, "completed 1 failed 1"},
		{"the machine's fault", "", Exit{Cause: ByMachine}, "idle 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			id := d.submit(1, c.ad)
			d.end(d.start(), c.exit)
			d.want(id, c.want)
		})
	}
}
