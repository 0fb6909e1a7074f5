package document

import (
	"reflect"
	"testing"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TestPreemptionChain plants ends of different causes in the life of a task. The chain
// has to name the cause, the cost, and where the task went on.
func TestPreemptionChain(t *testing.T) {
	by := &scheddapi.PreemptionParty{Job: "9.n1", Owner: "ann", Band: "production"}
	var s taskEvents
	s.start(0)
	s.checkpoint(60, 60)
	s.end(100, 100, preempted)
	s.list[len(s.list)-1].Exit.Preemptor = by
	s.list[len(s.list)-1].Exit.Reason = "preempted by job 9.n1"
	s.start(110)
	s.list[len(s.list)-1].Displaced = []*scheddapi.PreemptionParty{{Job: "3.n1", Owner: "bob", Band: "free"}}
	s.end(130, 20, scheddapi.Cause_CAUSE_VACATED)
	s.start(140)
	s.end(150, 10, scheddapi.Cause_CAUSE_LEASE)
	s.start(160)
	s.add("lost", 165, &scheddapi.JobEvent{Text: "node n4 is gone"})
	s.start(170)
	s.end(210, 40, exited)
	timeline := s.of(completedRow())
	c := PreemptionChainOf(&timeline, s.list)
	type line struct {
		cause, next string
		lost        float64
		by          *PreemptionParty
	}
	var got []line
	for _, e := range c.Evictions {
		got = append(got, line{e.Cause, e.NextNode, e.Lost, e.Preemptor})
	}
	want := []line{{"preempted", "n2", 40, &PreemptionParty{"9.n1", "ann", "production"}}, {"vacated", "n3", 20, nil},
		{"lease", "n4", 10, nil}, {"lost", "n5", 5, nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if c.Lost != 75 || c.Lost != timeline.Lost {
		t.Errorf("the evictions lost %v s, the timeline says %v", c.Lost, timeline.Lost)
	}
	if e := c.Evictions[0]; e.CostText() != "40s since its last checkpoint" || e.Reason != "preempted by job 9.n1" ||
		e.NextText() != "on n2 at 1970-01-01T00:01:50.000Z" {
		t.Errorf("got %q, %q, %q", e.CostText(), e.Reason, e.NextText())
	}
	if e := c.Evictions[1]; e.CostText() != "20s, all that it ran" {
		t.Errorf("got %q", e.CostText())
	}
	if d := c.Displaced; len(d) != 1 || d[0].Job != "3.n1" || d[0].Attempt != 2 || d[0].Time == "" {
		t.Errorf("displaced: %+v", d)
	}
}

// TestNoPreemption checks that a task that ran once, and ended by itself or by its user,
// has an empty chain.
func TestNoPreemption(t *testing.T) {
	for _, cause := range []scheddapi.Cause{exited, scheddapi.Cause_CAUSE_REMOVED, scheddapi.Cause_CAUSE_MEMORY} {
		var s taskEvents
		s.start(0)
		s.end(10, 10, cause)
		timeline := s.of(completedRow())
		if c := PreemptionChainOf(&timeline, s.list); !c.IsEmpty() {
			t.Errorf("%v: got %+v", cause, c)
		}
	}
}

// TestShortAttempt: the end of a short attempt may be known without its start. When it
// began follows from how long it ran.
func TestShortAttempt(t *testing.T) {
	var s taskEvents
	s.start(10)
	s.checkpoint(15, 5)
	s.end(20, 10, preempted)
	s.start(30)
	s.list = s.list[:len(s.list)-1] // it is assigned, and its start is not known
	timeline := s.of(completedRow())
	if c := PreemptionChainOf(&timeline, s.list); c.Evictions[0].NextText() != "on n2, not started there yet" ||
		timeline.Restores != 0 {
		t.Errorf("%d restores, %q", timeline.Restores, c.Evictions[0].NextText())
	}
	s.end(40, 4, exited)
	timeline = s.of(completedRow())
	if c := PreemptionChainOf(&timeline, s.list); c.Evictions[0].NextText() != "on n2 at 1970-01-01T00:00:36.000Z" {
		t.Errorf("got %q", c.Evictions[0].NextText())
	}
	if a := timeline.Attempts[1]; timeline.Restores != 1 || a.Started != "1970-01-01T00:00:36.000Z" || a.Wall != 4 {
		t.Errorf("%d restores, attempt %+v", timeline.Restores, a)
	}
}

// TestRefusedAttempt: an attempt after an eviction is assigned and never begins. The task
// went on with the attempt that began.
func TestRefusedAttempt(t *testing.T) {
	var s taskEvents
	s.start(10)
	s.checkpoint(15, 5)
	s.end(20, 10, preempted)
	s.start(30)
	s.list = s.list[:len(s.list)-1] // assigned only
	s.end(31, 0, scheddapi.Cause_CAUSE_RESTORE)
	s.start(32)
	s.list = s.list[:len(s.list)-1]
	s.end(33, 0, scheddapi.Cause_CAUSE_REFUSED)
	s.start(40)
	s.end(50, 10, exited)
	timeline := s.of(completedRow())
	all := PreemptionChainOf(&timeline, s.list).Evictions
	if len(all) != 2 || all[1].Cause != "restore" {
		t.Errorf("got %+v, not one that was preempted and one that was not restored", all)
	}
	for _, e := range all {
		if e.NextAttempt != 4 || e.NextText() != "on n4 at 1970-01-01T00:00:40.000Z" {
			t.Errorf("after attempt %d: attempt %d, %q", e.Attempt, e.NextAttempt, e.NextText())
		}
	}
}
