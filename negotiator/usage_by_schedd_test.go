package negotiator

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestUsageBySchedd checks that holdings of claims are listed under their schedds. A
// claim without a task must not count for a schedd that is away, or everything that
// starts while accounts are updated would be charged twice.
func TestUsageBySchedd(t *testing.T) {
	ann := fairshare.Submitter{Owner: "ann"}
	claim := func(job string) match.MachineClaim {
		return match.MachineClaim{Job: job, Submitter: ann, Resources: roost.Resources{CPU: 1000}}
	}
	m := &inventoryMachine{Machine: &match.Machine{Claims: []match.MachineClaim{claim("1[0].s"), claim(""),
		claim("2[7].s.example.org")}}}
	h := usageBySchedd{}
	h.addMachine(m, 1)
	if len(h) != 2 || h["s"][ann].CPU != 1000 || h["s.example.org"][ann].CPU != 1000 {
		t.Errorf("got %v", h)
	}
	if h.addMachine(m, -1); len(h) != 0 {
		t.Errorf("when the machine is gone there is left %v", h)
	}
}
