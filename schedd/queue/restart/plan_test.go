package restart

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var usual = Policy{First: time.Second, Max: time.Minute, Restarts: 5, Window: 10 * time.Minute}

// crash ends a task again and again after it ran and was ready for a while each time.
func crash(p Policy, life, ready time.Duration, times int) (plans []Plan) {
	var h History
	now := int64(1_700_000_000_000_000_000)
	for n := range times {
		e := TaskEnd{Job: 7, Index: 3, Attempt: roost.AttemptNumber(n + 1), Started: now, Ended: now + int64(life)}
		if ready > 0 {
			e.ReadySince = e.Ended - int64(ready)
		}
		plan := Next(p, h, e)
		plans, h = append(plans, plan), plan.History
		now = e.Ended + int64(plan.Wait)
	}
	return plans
}

// TestWaitsOfCrashLoop checks each wait of a task that fails at once. The first is not
// skipped, each is at most a quarter below its full length, and none exceeds the bound.
func TestWaitsOfCrashLoop(t *testing.T) {
	full := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i, p := range crash(usual, 100*time.Millisecond, 0, len(full)) {
		want := full[i] * time.Second
		if p.Wait > want || p.Wait <= want*3/4 {
			t.Errorf("wait %d is %v, want at most %v and more than %v", i+1, p.Wait, want, want*3/4)
		}
		if same := i != 5; p.SameMachine != same {
			t.Errorf("restart %d is on the same machine: %v, want %v", i+1, p.SameMachine, same)
		}
	}
}

// TestWaitsAreExact pins the waits, which a replay of the log must make again.
func TestWaitsAreExact(t *testing.T) {
	want := []time.Duration{843862902, 1506204712, 3133423484, 7540762604, 15565581450, 28226825443, 54740508615,
		49294875884}
	for i, p := range crash(usual, time.Second, 0, len(want)) {
		if p.Wait != want[i] {
			t.Errorf("wait %d is %d, want %d", i+1, p.Wait, want[i])
		}
	}
}

// TestLongLife checks that a task that lived for long starts at once. Only time as ready
// makes the waits begin anew.
func TestLongLife(t *testing.T) {
	for _, c := range []struct {
		name        string
		life, ready time.Duration
		wait        time.Duration // full
		ends        int
	}{
		{"ready for long", time.Hour, StableTime, 0, 0},
		{"never ready", time.Hour, 0, 0, 4},
		{"ready for a moment", time.Hour, StableTime - 1, 0, 4},
		{"almost", StableTime - 1, StableTime - 2, 16 * time.Second, 5},
	} {
		now := int64(1e18)
		e := TaskEnd{Job: 1, Attempt: 5, Started: now - int64(c.life), Ended: now}
		if c.ready > 0 {
			e.ReadySince = now - int64(c.ready)
		}
		p := Next(usual, History{EarlyEnds: 4}, e)
		if p.EarlyEnds != c.ends || p.Wait > c.wait || p.Wait < c.wait*3/4 {
			t.Errorf("%s: waits %v after %d ends, want %v after %d", c.name, p.Wait, p.EarlyEnds, c.wait, c.ends)
		}
	}
}

// TestWindow checks that restarts count for as long as the window. A machine that spoils
// an attempt is left at once.
func TestWindow(t *testing.T) {
	p := Policy{First: time.Second, Max: time.Second, Restarts: 2, Window: 10 * time.Second}
	var got []bool
	for _, x := range crash(p, 4*time.Second, 0, 6) {
		got = append(got, x.SameMachine)
	}
	for i, want := range []bool{true, true, false, true, true, false} {
		if got[i] != want {
			t.Fatalf("got %v, want every third on another machine", got)
		}
	}
	for _, x := range crash(p, 6*time.Second, 0, 6) { // at most one more is within the window
		if !x.SameMachine || len(x.Recent) > p.Restarts {
			t.Fatalf("%+v", x)
		}
	}
	if x := Next(usual, History{}, TaskEnd{Started: 1, Ended: 2, ByMachine: true}); x.SameMachine || x.Wait == 0 {
		t.Fatalf("a machine that spoiled the attempt is used again: %+v", x)
	}
	if x := Next(Policy{First: time.Hour, Max: time.Hour, Restarts: 5, Window: time.Hour}, History{},
		TaskEnd{Ended: 1}); x.SameMachine {
		t.Fatal("a claim is kept for an hour")
	}
}

// TestDueHeap checks the order of what is due.
func TestDueHeap(t *testing.T) {
	var h DueHeap
	for _, at := range []int64{5, 1, 4, 1, 3} {
		h.Add(DueTask{At: at, Job: uint64(10 - at), Index: int(at)})
	}
	last := int64(0)
	for n := 0; ; n++ {
		x, ok := h.First()
		if !ok {
			if n != 5 {
				t.Fatalf("%d of 5", n)
			}
			return
		}
		if x.At < last {
			t.Fatalf("%d after %d", x.At, last)
		}
		last = x.At
		h.RemoveFirst()
	}
}
