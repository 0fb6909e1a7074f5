package health

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// State is how an attempt is.
type State uint8

// The states of an attempt.
const (
	Starting State = iota
	Unready
	Ready
	Failing // a check for "live" has failed: the attempt asks to be ended
	Leaving // it is being stopped
)

// String returns the state as users see it.
func (s State) String() string {
	return [...]string{"starting", "unready", "ready", "failing", "leaving"}[s]
}

// Report is the state of an attempt with its reason.
type Report struct {
	State    State
	Check    string // name of the check that is the reason; empty: none is
	Detail   string // what it last said
	Failures int    // failures of that check in a row
}

// checkState is how far one check has come.
type checkState struct {
	Check
	due        roost.BootTime
	running    bool
	results    int // that were not unknown, since the start
	failures   int // in a row, that count
	passes     int // in a row
	passedOnce bool
	failed     bool
	detail     string
	trouble    string // why the runs of an attempt that starts say nothing
	last       CheckResult
}

// Tracker derives the state of one attempt from the results of its checks. Its methods
// are for one goroutine.
type Tracker struct {
	checks    []checkState
	leaving   bool
	heldUntil roost.BootTime // checks are not run before
}

// NewTracker returns the tracker of an attempt that started now. Each check is first due
// at a random time within its interval; random returns a number in [0, 1). An attempt
// that an earlier start of the startd has tracked goes on from its last state.
func NewTracker(now roost.BootTime, checks []Check, last State, random func() float64) *Tracker {
	t := &Tracker{checks: make([]checkState, len(checks))}
	for i, c := range checks {
		t.checks[i] = checkState{Check: c, due: now + time.Duration(random()*float64(c.Every))}
		t.checks[i].last = CheckResult{Name: c.Name, Outcome: Unknown, Since: now}
		if last != Starting {
			t.checks[i].passedOnce, t.checks[i].results = true, c.maxStartResults()
			t.checks[i].failed = last == Unready && !c.IsLive
		}
	}
	t.leaving = last == Leaving
	return t
}

// Check returns the check of that index.
func (t *Tracker) Check(i int) *Check { return &t.checks[i].Check }

// Due is a check that is to be run.
type Due struct {
	Index int
	At    roost.BootTime // when it should have begun
}

// Todo returns the checks that are to be run now, and when to ask again. A check that
// runs is not due before its result.
func (t *Tracker) Todo(now roost.BootTime) (due []Due, wake roost.BootTime) {
	if t.leaving {
		return nil, t.NextDue()
	}
	for i := range t.checks {
		if c := &t.checks[i]; !c.running && max(c.due, t.heldUntil) <= now {
			c.running = true
			due = append(due, Due{i, max(c.due, t.heldUntil)})
		}
	}
	return due, t.NextDue()
}

// NextDue is when Todo is to be asked again. It starts nothing.
func (t *Tracker) NextDue() roost.BootTime {
	wake := roost.BootTime(math.MaxInt64)
	for i := range t.checks {
		if c := &t.checks[i]; !c.running && !t.leaving {
			wake = min(wake, max(c.due, t.heldUntil))
		}
	}
	return wake
}

// Apply takes in the result of a run, and reports whether the state or its reason
// changed.
func (t *Tracker) Apply(now roost.BootTime, index int, r Result) bool {
	c, before := &t.checks[index], t.Report()
	c.running = false
	if c.due += c.Every; c.due <= now { // runs that were missed are left out
		c.due = now + c.Every - (now-c.due)%c.Every
	}
	if now < t.heldUntil {
		return false
	}
	c.last.note(now, r)
	if c.last.Untold == 0 {
		c.trouble = ""
	} else if c.last.Untold >= c.Fails && c.trouble == "" { // other words are no other state
		c.trouble = c.last.Trouble
	}
	switch r.Outcome {
	case Passed:
		c.pass()
	case Failed:
		c.fail(r.Detail)
	}
	return t.Report() != before
}

func (c *checkState) pass() {
	c.results, c.failures = c.results+1, 0
	if c.passes++; c.passes >= c.Passes {
		c.passedOnce, c.failed, c.detail = true, false, ""
	}
}

func (c *checkState) fail(detail string) {
	c.results, c.passes, c.detail = c.results+1, 0, detail
	forgiven := c.results <= c.forgivenResults()
	if forgiven && (c.IsLive || !c.passedOnce) {
		return
	}
	c.failures++
	if c.failures >= c.Fails || !c.passedOnce && c.maxStartResults()-c.results < c.Passes {
		c.failed = true
	}
}

// Hold has no check run until then. The state stays as it is meanwhile.
func (t *Tracker) Hold(until roost.BootTime) { t.heldUntil = until }

// SetLeaving notes that the attempt is being stopped. It is not checked any more.
func (t *Tracker) SetLeaving() { t.leaving = true }

// Report returns the state with its reason. The worst check decides.
func (t *Tracker) Report() Report {
	if t.leaving {
		return Report{State: Leaving}
	}
	worst := Report{State: Ready}
	for i := range t.checks {
		if r := t.checks[i].report(); badness(r.State) > badness(worst.State) {
			worst = r
		}
	}
	return worst
}

func (c *checkState) report() Report {
	r := Report{State: Ready, Check: c.Name, Detail: c.detail, Failures: c.failures}
	switch {
	case c.failed && c.IsLive:
		r.State = Failing
	case c.failed:
		r.State = Unready
	case !c.passedOnce:
		if r.State = Starting; c.trouble != "" {
			r.Detail = "there is no result: " + c.trouble
		}
	}
	return r
}

func badness(s State) int {
	return [...]int{Ready: 0, Starting: 1, Unready: 2, Failing: 3, Leaving: 4}[s]
}

// String explains the report in a few words, such as "unready: check up: 503 Service
// Unavailable, 3rd time".
func (r Report) String() string {
	text := r.State.String()
	if r.Check == "" {
		return text
	}
	text += ": check " + r.Check
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Failures > 1 {
		text += ", " + Ordinal(r.Failures) + " time"
	}
	return text
}

// Ordinal returns a number as English counts: 1st, 2nd, 3rd, 4th, 11th.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
