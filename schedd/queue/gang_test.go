package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

func gangQueue(t *testing.T, ad string, count int) (*Queue, error) {
	t.Helper()
	parsed, err := classad.Parse("[Cmd = \"/bin/true\"; " + ad + "]")
	if err != nil {
		t.Fatal(err)
	}
	q := New("h")
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann", UID: 1}, "k",
		[]jobad.SubmitSpec{{Ad: parsed, Count: count}}, SubmitLimits{})
	for _, e := range events {
		q.Apply(e)
	}
	q.Check()
	return q, err
}

// TestGang plays the life of a job of two gangs. They are offered whole, and one that
// loses a task starts again whole.
func TestGang(t *testing.T) {
	q, err := gangQueue(t, "GangSize = 2", 4)
	if err != nil {
		t.Fatal(err)
	}
	seats := []GangClaim{{Node: "a", Address: "x", Claim: 1}, {Node: "b", Address: "x", Claim: 2}}
	start := func() []roost.AttemptID {
		t.Helper()
		events, attempts, ok := q.AssignGang(time.Unix(2, 0), 1, seats)
		if !ok {
			t.Fatal("no gang is whole")
		}
		for _, e := range events {
			q.Apply(e)
		}
		q.Check()
		return attempts
	}
	if size, ok := q.NextGang(1); size != 2 || !ok {
		t.Fatalf("a gang of %d, %v", size, ok)
	}
	first, second := start(), start()
	if size, _ := q.NextGang(1); size != 0 || first[1].Task.Index != 1 || second[0].Task.Index != 2 {
		t.Fatalf("a gang of %d is left; %v, %v", size, first, second)
	}
	if p, err := q.Program(second[1]); err != nil || p.Rank != 1 || len(p.Peers) != 2 || p.Peers[0] != "a" ||
		p.Peers[1] != "b" {
		t.Fatalf("rank %d of %v, %v", p.Rank, p.Peers, err)
	}
	lose := func(a roost.AttemptID) {
		t.Helper()
		e, ok := q.RecordLost(time.Unix(3, 0), a, "gone")
		if !ok {
			t.Fatalf("%v is not live", a)
		}
		q.Apply(e)
		q.Check()
	}
	lose(second[0])
	if asked := q.TakeVacates(); len(asked) != 1 || asked[0].Attempt != second[1] {
		t.Fatalf("with one of its tasks gone the gang is vacated: %v", asked)
	}
	if size, _ := q.NextGang(1); size != 0 {
		t.Fatalf("half a gang is offered: %d", size)
	}
	lose(second[1])
	if asked := q.TakeVacates(); len(asked) != 0 {
		t.Fatalf("the first gang has nothing to do with it: %v", asked)
	}
	again := start()
	if again[0].Attempt != 2 || again[0].Task.Index != 2 {
		t.Fatalf("it starts again as %v", again)
	}
	e, err := q.RecordEnded(time.Unix(4, 0), again[0], &eventlog.AttemptExit{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(e)
	q.TakeVacates()
	lose(again[1])
	seats = seats[:1]
	if last := start(); last[0].Task.Index != 3 {
		t.Fatalf("what has not completed starts again: %v", last)
	}
}

func TestGangRefused(t *testing.T) {
	for ad, count := range map[string]int{"GangSize = 2": 3, "GangSize = 2; MaxRunning = 2": 4,
		`GangSize = 2; AppClass = "stream"`: 4, "GangSize = 4096": 4096, "GangSize = -1": 2} {
		if _, err := gangQueue(t, ad, count); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s, %d tasks: %v", ad, count, err)
		}
	}
}

// TestPrediction checks that the last two runs predict the next one, and never more than
// its walltime.
func TestPrediction(t *testing.T) {
	q, err := gangQueue(t, "JobMaxVacateTime = 1", 9)
	if err != nil {
		t.Fatal(err)
	}
	run := func(seconds int64) time.Duration {
		id, _ := q.NextTask(1)
		e, a, err := q.AssignNext(time.Unix(2, 0), id, "a", "x", 1)
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
		if e, err = q.RecordEnded(time.Unix(3, 0), a,
			&eventlog.AttemptExit{Wall: seconds * int64(time.Second)}); err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
		r, _ := q.Request(1)
		return r.PredictedRuntime
	}
	for i, want := range []time.Duration{0, 150, 250} {
		if got := run(int64(100 * (i + 1))); got != want*time.Second {
			t.Errorf("after %d runs: %v, want %v", i+1, got, want*time.Second)
		}
	}
	id, _ := q.NextTask(1)
	e, a, err := q.AssignNext(time.Unix(2, 0), id, "a", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(e)
	if p, err := q.Program(a); err != nil || p.PredictedRuntime != 250*time.Second || p.NotRerunnable {
		t.Errorf("the next one is started as one of %v, %v", p.PredictedRuntime, err)
	}
	r, _ := q.Request(1)
	r.Walltime = time.Minute
	if got := q.predictedRuntime(r); got != time.Minute {
		t.Errorf("with a walltime of a minute: %v", got)
	}
}
