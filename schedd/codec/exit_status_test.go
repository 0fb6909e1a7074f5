package codec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
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

// TestStoredOutput checks that what is stored of an attempt's output outlives the log. A
// node has no say in it.
func TestStoredOutput(t *testing.T) {
	x := &queue.AttemptExit{Stored: queue.StoredOutput{Out: "1a", Err: "2b", Files: "3c", OutBytes: 1, ErrBytes: 2,
		FileCount: 3, FileBytes: 1 << 40}}
	e, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &eventlog.JobEvent{Type: eventlog.Ended, Job: 1, Exit: x}))
	if err != nil || !reflect.DeepEqual(e.Exit, x) {
		t.Fatalf("%+v became %+v, %v", x, e.Exit, err)
	}
	o := WireExitStatus(e.Exit).GetStored()
	if o.GetOutBytes() != 1 || o.GetErrBytes() != 2 || o.GetFiles() != 3 || o.GetFileBytes() != 1<<40 {
		t.Errorf("users see %v", o)
	}
	if got := QueueExit(&wire.ExitStatus{Stored: o}).Stored; got != (queue.StoredOutput{}) {
		t.Errorf("a node said what is stored: %+v", got)
	}
	if got := WireExitStatus(&queue.AttemptExit{}).GetStored(); got != nil {
		t.Errorf("without stored output users see %v", got)
	}
}
