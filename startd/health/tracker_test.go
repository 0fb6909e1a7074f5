package health

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// checkDriver runs one check at its own times, with results from a list.
type checkDriver struct {
	*testing.T
	*Tracker
	now roost.BootTime
}

func newDriver(t *testing.T, c Check) *checkDriver {
	c.Name = "up"
	d := &checkDriver{T: t, now: time.Hour}
	d.Tracker = NewTracker(d.now, []Check{c}, Starting, func() float64 { return 0 })
	return d
}

// feed gives results, each when the check is due, and returns the state after each. "."
// is a pass, "x" a failure, "?" an unknown result, "!" one that says why.
func (d *checkDriver) feed(results string) (states string) {
	d.Helper()
	for _, r := range results {
		due, wake := d.Todo(d.now)
		for len(due) == 0 {
			d.now = wake
			due, wake = d.Todo(d.now)
		}
		if again, _ := d.Todo(d.now); len(again) > 0 {
			d.Fatal("a check that runs is due again")
		}
		result := map[rune]Result{'.': {Outcome: Passed}, 'x': {Failed, "503"}, '?': {Outcome: Unknown},
			'!': {Unknown, "no program"}}[r]
		before := d.Report()
		if changed := d.Apply(d.now, due[0].Index, result); changed != (d.Report() != before) {
			d.Fatalf("change reported as %v", changed)
		}
		states += string(d.Report().State.String()[0])
	}
	return states
}

// TestOneCheck follows the health checker of Aurora (test_health_checker.py), whose tests
// the cases are named after.
func TestOneCheck(t *testing.T) {
	second := Check{Every: time.Second, Timeout: time.Second, Fails: 1, Passes: 1}
	grace := func(c Check, d time.Duration) Check { c.StartWithin = d; return c }
	live := func(c Check) Check { c.IsLive = true; return c }
	three := func(c Check) Check { c.Fails = 3; return c }
	for _, c := range []struct {
		name, results, want string
		check               Check
	}{
		{"grace_period_2x_success", "xx.", "ssr", grace(second, 2*time.Second)},
		{"grace_period_2x_failure_then_success", "xx.x.", "ssrur", grace(second, 2*time.Second)},
		{"grace_period_2x_failure", "xxx", "ssu", grace(second, 2*time.Second)},
		{"grace_period_2x_success_then_failure", ".xx.", "ruur", grace(second, 2*time.Second)},
		{"ignore_failures_after_running_inside_grace_period", ".xxx", "rrrf", live(grace(second, 3*time.Second))},
		{"ignore_failures_inside_grace_period", "xxx.", "sssr", live(grace(second, 3*time.Second))},
		{"consecutive_failures", ".xx.xxx", "rrrrrru", three(second)},
		{"consecutive_failures_max_failures", "xxx.", "ssur", three(second)},
		{"consecutive_failures_failfast", "x", "u", Check{Every: time.Second, Fails: 1, Passes: 4}},
		{"consecutive passes", "...x.", "ssrrr", Check{Every: time.Second, Fails: 2, Passes: 3}},
		{"live restart", ".xxx", "rrrf", live(three(second))},
		{"live recovers", "...xxx.", "rrrrrfr", live(three(second))},
		{"never passes", "x.x.x.x.x", "ssssssuuu", Check{Every: time.Second, Fails: 3, Passes: 2,
			StartWithin: 2 * time.Second}},
		{"unknown results change nothing", "x?.??x?x?x?.", "ssrrrrrrruur", three(second)},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			if got := newDriver(t, c.check).feed(c.results); got != c.want {
				t.Errorf("%s gave %s, and should give %s", c.results, got, c.want)
			}
		})
	}
}

// TestJudge checks that a prober that is late itself does not blame the task.
func TestJudge(t *testing.T) {
	c := &Check{Timeout: 4 * time.Second}
	if r := Judge(c, 2*time.Second, "timeout"); r != (Result{Failed, "timeout"}) {
		t.Errorf("late by half of the timeout: %v", r)
	}
	if r := Judge(c, 2*time.Second+1, "timeout"); r.Outcome != Unknown {
		t.Errorf("late by more than half of the timeout: %v", r)
	}
}

// TestWorstCheckDecides checks how the states of several checks make one.
func TestWorstCheckDecides(t *testing.T) {
	c := Check{Every: time.Second, Timeout: time.Second, Fails: 1, Passes: 1}
	up, db, alive := c, c, c
	up.Name, db.Name, alive.Name, alive.IsLive = "up", "db", "alive", true
	tr := NewTracker(0, []Check{up, db, alive}, Starting, func() float64 { return 0 })
	step := func(want string, index int, r Result) {
		t.Helper()
		tr.Apply(0, index, r)
		if got := tr.Report().String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	step("starting: check db", 0, Result{Outcome: Passed})
	step("starting: check alive", 1, Result{Outcome: Passed})
	step("ready", 2, Result{Outcome: Passed})
	step("unready: check up: 503 Service Unavailable", 0, Result{Failed, "503 Service Unavailable"})
	step("unready: check up: 503 Service Unavailable, 2nd time", 0, Result{Failed, "503 Service Unavailable"})
	step("failing: check alive: connection refused", 2, Result{Failed, "connection refused"})
	step("failing: check alive: connection refused", 0, Result{Outcome: Passed})
	step("ready", 2, Result{Outcome: Passed})
	tr.SetLeaving()
	step("leaving", 1, Result{Failed, "gone"})
	if due, _ := tr.Todo(time.Hour); len(due) > 0 {
		t.Error("a leaving attempt is checked")
	}
}

// TestFirstRunsAreSpread checks that the first runs of many attempts that start together
// do not come together.
func TestFirstRunsAreSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	perSecond := make([]int, 10)
	for range 10_000 {
		tr := NewTracker(0, []Check{{Every: 10 * time.Second, Fails: 1, Passes: 1}}, Starting, random.Float64)
		_, wake := tr.Todo(0)
		perSecond[min(int(wake/time.Second), 9)]++
	}
	for second, n := range perSecond {
		if n < 900 || n > 1100 {
			t.Errorf("second %d has %d of 10,000 first runs", second, n)
		}
	}
}

// TestHold checks that held checks are not run, and that a hold ends by itself. Results
// of runs that had begun before do not count.
func TestHold(t *testing.T) {
	d := newDriver(t, Check{Every: time.Second, Timeout: time.Second, Fails: 1, Passes: 1})
	if got := d.feed("."); got != "r" {
		t.Fatal(got)
	}
	d.now += time.Second
	due, _ := d.Todo(d.now)
	end := d.now + time.Minute
	d.Hold(end)
	if len(due) != 1 || d.Apply(d.now, due[0].Index, Result{Failed, "paused"}) {
		t.Error("the result of a held check counts")
	}
	if due, wake := d.Todo(d.now + time.Second); len(due) > 0 || wake != end {
		t.Errorf("held until %v: due %v, wake %v", end, due, wake)
	}
	d.now = end
	if got := d.feed("x"); got != "u" {
		t.Error("after the hold: ", got)
	}
}

// TestMissedRuns checks that runs that nobody could make are left out. The times of a
// check stay its own.
func TestMissedRuns(t *testing.T) {
	d := newDriver(t, Check{Every: 10 * time.Second, Timeout: time.Second, Fails: 1, Passes: 1})
	begin := d.now
	d.feed(".")
	d.now = begin + 47*time.Second
	due, _ := d.Todo(d.now)
	if len(due) != 1 || d.now-due[0].At != 37*time.Second {
		t.Fatalf("due: %v", due)
	}
	d.Apply(d.now, 0, Result{Outcome: Passed})
	if _, wake := d.Todo(d.now); wake != begin+50*time.Second {
		t.Errorf("next at %v", wake-begin)
	}
}

// TestAdoptedTracker checks that a restart of the startd changes no state. A failing
// attempt gets no second start.
func TestAdoptedTracker(t *testing.T) {
	c := Check{Name: "up", Every: time.Second, Timeout: time.Second, Fails: 2, Passes: 1, StartWithin: time.Minute}
	for _, last := range []State{Starting, Unready, Ready, Leaving} {
		if got := NewTracker(0, []Check{c}, last, rand.Float64).Report().State; got != last {
			t.Errorf("%v became %v", last, got)
		}
	}
	tr := NewTracker(0, []Check{c}, Ready, rand.Float64)
	tr.Apply(0, 0, Result{Failed, "x"})
	tr.Apply(0, 0, Result{Failed, "x"})
	if got := tr.Report().State; got != Unready {
		t.Errorf("after two failures: %v", got)
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th",
		21: "21st", 102: "102nd", 111: "111th"} {
		if got := Ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
