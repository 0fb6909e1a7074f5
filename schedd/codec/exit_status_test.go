package codec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPreemptionParties checks what is believed of a node about the parties to a
// preemption.
func TestPreemptionParties(t *testing.T) {
	good := &wire.PreemptionParty{Job: "9.n1", Owner: "ann", Band: "production"}
	unknown := &wire.PreemptionParty{Owner: "ann", Band: "free"}
	bad := []*wire.PreemptionParty{nil, {}, {Job: "9", Owner: "ann", Band: "free"},
		{Job: "9[1].n1", Owner: "ann", Band: "free"}, {Job: "9.n1", Owner: "ann", Band: "high"},
		{Job: "9.n1", Owner: "", Band: "free"}, {Job: "9.n1", Owner: "ann\n", Band: "free"},
		{Job: "9.n1", Owner: "\xff", Band: "free"}, {Job: "9.n\x1b", Owner: "ann", Band: "free"},
		{Job: "9." + strings.Repeat("n", 300), Owner: "ann", Band: "free"},
		{Job: "9.n1", Owner: strings.Repeat("a", 300), Band: "free"}, {Job: "09.n1", Owner: "ann", Band: "free"}}
	got := PreemptionParties(append(bad, good, unknown))
	want := []roost.PreemptionParty{{Job: "9.n1", Owner: "ann", Band: roost.ProductionBand},
		{Owner: "ann", Band: roost.FreeBand}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	many := make([]*wire.PreemptionParty, 1000)
	for i := range many {
		many[i] = good
	}
	if n := len(PreemptionParties(many)); n != maxParties {
		t.Errorf("%d of 1000 were taken", n)
	}
}

// TestPreemptorOfExit checks that the preemptor of an end is kept, and only of one that
// was a preemption.
func TestPreemptorOfExit(t *testing.T) {
	party := &wire.PreemptionParty{Job: "9.n1", Owner: "ann", Band: "production"}
	x := &wire.ExitStatus{Cause: wire.Cause_CAUSE_PREEMPTED, Preemptor: party}
	if got := WireExitStatus(QueueExit(x)).GetPreemptor(); got.GetJob() != "9.n1" || got.GetBand() != "production" {
		t.Errorf("got %v", got)
	}
	x.Cause = wire.Cause_CAUSE_EXITED
	if got := QueueExit(x).Preemptor; got != nil {
		t.Errorf("an attempt that ended by itself has the preemptor %v", got)
	}
}
