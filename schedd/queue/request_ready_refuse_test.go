package queue

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestStreamStartsWhole plays the life of a stream job: its tasks start together, and
// later each by itself.
func TestStreamStartsWhole(t *testing.T) {
	q, err := gangQueue(t, `AppClass = "stream"; MaxRetries = 1`, 3)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(events ...eventlog.JobEvent) {
		t.Helper()
		for _, e := range events {
			q.Apply(e)
		}
		q.Check()
	}
	if size, ok := q.NextGang(1); size != 3 || !ok {
		t.Fatalf("a gang of %d, %v", size, ok)
	}
	if id, ok := q.NextTask(1); ok {
		t.Fatalf("%v would start by itself", id)
	}
	events, attempts, ok := q.AssignGang(time.Unix(2, 0), 1, []GangClaim{{Node: "a", Address: "x", Claim: 1},
		{Node: "b", Address: "x", Claim: 2}, {Node: "c", Address: "x", Claim: 3}})
	if !ok {
		t.Fatal("it does not start")
	}
	apply(events...)
	if p, err := q.Program(attempts[1]); err != nil || len(p.Peers) > 0 {
		t.Errorf("its tasks are told of %v, %v", p.Peers, err)
	}
	e, _ := q.RecordStarted(time.Unix(3, 0), attempts[0])
	apply(e)
	lost, _ := q.RecordLost(time.Unix(4, 0), attempts[1], "gone")
	apply(lost)
	if asked := q.TakeVacates(); len(asked) > 0 {
		t.Errorf("the others are to end: %v", asked)
	}
	if size, ok := q.NextGang(1); ok {
		t.Errorf("what was lost waits for a gang of %d", size)
	}
	if id, ok := q.NextTask(1); !ok || id.Index != 1 {
		t.Errorf("what was lost does not start by itself: %v, %v", id, ok)
	}
	if events := q.HoldInfeasible(time.Unix(5, 0), 1, "no room"); len(events) > 0 {
		t.Errorf("a job that serves is refused: %+v", events)
	}
}

// TestHoldInfeasible holds that a stream job that finds no room is held whole, and starts
// whole when it is released.
func TestHoldInfeasible(t *testing.T) {
	for _, count := range []int{1, 3} {
		q, err := gangQueue(t, `AppClass = "stream"`, count)
		if err != nil {
			t.Fatal(err)
		}
		events := q.HoldInfeasible(time.Unix(2, 0), 1, "the one machine is busy")
		if len(events) != 1 || !strings.Contains(events[0].Reason, "the one machine is busy") ||
			!strings.Contains(events[0].Reason, "roost release 1.h") {
			t.Fatalf("%+v", events)
		}
		q.Apply(events[0])
		q.Check()
		if again := q.HoldInfeasible(time.Unix(2, 0), 1, "still busy"); len(again) > 0 {
			t.Errorf("refused twice: %+v", again)
		}
		released, err := q.ReleaseTasks(time.Unix(3, 0), CallerIdentity{User: "ann", UID: 1},
			TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}})
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(released[0])
		q.Check()
		if size, ok := q.NextGang(1); ok != (count > 1) || ok && size != count {
			t.Errorf("a gang of %d, %v", size, ok)
		}
	}
	if q, err := gangQueue(t, "", 1); err != nil || len(q.HoldInfeasible(time.Unix(2, 0), 1, "no room")) > 0 {
		t.Errorf("a batch job is refused, %v", err)
	}
}

// TestLastTaskOfGang holds that what is left of a gang, if it is one task, needs no
// company.
func TestLastTaskOfGang(t *testing.T) {
	q, err := gangQueue(t, "GangSize = 2", 2)
	if err != nil {
		t.Fatal(err)
	}
	who := CallerIdentity{User: "ann", UID: 1}
	events, err := q.RemoveTasks(time.Unix(2, 0), who,
		TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}, "",
		false)
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	if id, ok := q.NextTask(1); !ok || id.Index != 1 {
		t.Errorf("%v, %v", id, ok)
	}
}

func TestStreamJobRefused(t *testing.T) {
	for ad, count := range map[string]int{`AppClass = "stream"; MaxRunning = 1`: 2, `AppClass = "stream"`: 4096} {
		if _, err := gangQueue(t, ad, count); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s, %d tasks: %v", ad, count, err)
		}
	}
	for ad, count := range map[string]int{`AppClass = "stream"; MaxRunning = 1`: 1,
		`AppClass = "stream"; GangSize = 2`: 2} {
		if _, err := gangQueue(t, ad, count); err != nil {
			t.Errorf("%s, %d tasks: %v", ad, count, err)
		}
	}
}
