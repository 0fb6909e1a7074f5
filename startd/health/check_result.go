package health

import "github.com/roost-batch/roost"

// CheckResult is how the runs of one check have ended of late.
type CheckResult struct {
	Name     string
	Outcome  Outcome        // of the last run that said anything; Unknown: there was none
	Since    roost.BootTime // of the first of such runs in a row; Unknown: since when it is checked
	Failures int            // in a row, also those that do not count yet
	Detail   string         // why the last run failed
	Untold   int            // runs in a row that said nothing
	Trouble  string         // why the last of them said nothing; empty: the task stands still
}

// note takes in the end of a run. What says nothing changes nothing but Untold and
// Trouble.
func (c *CheckResult) note(now roost.BootTime, r Result) {
	if r.Outcome == Unknown {
		if r.Detail != "" {
			c.Untold++
		}
		c.Trouble = r.Detail
		return
	}
	c.Untold, c.Trouble = 0, ""
	if c.Outcome != r.Outcome {
		c.Outcome, c.Since, c.Failures = r.Outcome, now, 0
	}
	if c.Detail = ""; r.Outcome == Failed {
		c.Failures++
		c.Detail = r.Detail
	}
}

// exactFailures is up to which number each failure in a row is news; beyond, each tenth
// is.
const exactFailures = 10

// IsNews reports whether the result is to be told to whom an older one was told. A check
// that fails all the time shall not be a message every second.
func (c CheckResult) IsNews(last CheckResult) bool {
	failures, untold := c.Failures, c.Untold
	c.Failures, c.Untold = last.Failures, last.Untold
	return c != last || isNewCount(failures, last.Failures) || isNewCount(untold, last.Untold)
}

func isNewCount(n, last int) bool { return n != last && (n <= exactFailures || n%exactFailures == 0) }

// Result returns how one check is.
func (t *Tracker) Result(i int) CheckResult { return t.checks[i].last }

// Results lists how each check is, in the order of the checks.
func (t *Tracker) Results() []CheckResult {
	list := make([]CheckResult, len(t.checks))
	for i := range t.checks {
		list[i] = t.checks[i].last
	}
	return list
}
