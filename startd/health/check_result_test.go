package health

import (
	"testing"
	"time"
)

// TestCheckResults checks the last result of a check, since when it is so, and the
// failures in a row.
func TestCheckResults(t *testing.T) {
	d := newDriver(t, Check{Every: time.Second, Timeout: time.Second, Fails: 3, Passes: 1})
	began := d.now
	for _, c := range []struct {
		feed string
		want CheckResult
	}{
		{"?", CheckResult{Name: "up", Outcome: Unknown, Since: began}},
		{"x", CheckResult{"up", Failed, began + time.Second, 1, "503", 0, ""}},
		{"?x", CheckResult{"up", Failed, began + time.Second, 2, "503", 0, ""}},
		{".", CheckResult{Name: "up", Outcome: Passed, Since: began + 4*time.Second}},
		{"..", CheckResult{Name: "up", Outcome: Passed, Since: began + 4*time.Second}},
		{"xxxx", CheckResult{"up", Failed, began + 7*time.Second, 4, "503", 0, ""}},
		{"!!", CheckResult{"up", Failed, began + 7*time.Second, 4, "503", 2, "no program"}},
		{".", CheckResult{Name: "up", Outcome: Passed, Since: began + 13*time.Second}},
	} {
		d.feed(c.feed)
		if got := d.Results(); len(got) != 1 || got[0] != c.want || d.Result(0) != c.want {
			t.Errorf("after %q: got %+v, want %+v", c.feed, got, c.want)
		}
	}
}

// TestNoResult checks that an attempt whose check never gives a result says why.
func TestNoResult(t *testing.T) {
	d := newDriver(t, Check{Every: time.Second, Timeout: time.Second, Fails: 3, Passes: 1})
	d.feed("!!")
	if got := d.Report(); got.Detail != "" {
		t.Errorf("after two runs without a result: %+v", got)
	}
	d.feed("!")
	if got, want := d.Report().String(), "starting: check up: there is no result: no program"; got != want {
		t.Errorf("after three runs without a result: %q, want %q", got, want)
	}
	if d.feed("."); d.Report().State != Ready {
		t.Errorf("after a pass: %+v", d.Report())
	}
}

// TestCheckResultNews checks that each failure in a row is news, and later each tenth.
func TestCheckResultNews(t *testing.T) {
	d := newDriver(t, Check{Every: time.Second, Timeout: time.Second, Fails: 3, Passes: 1})
	last, news := d.Result(0), 0
	for range 100 {
		d.feed("x")
		if now := d.Result(0); now.IsNews(last) {
			last = now
			news++
		}
	}
	if want := exactFailures + 100/exactFailures - 1; news != want || last.Failures != 100 {
		t.Errorf("%d failures were reported %d times, the last as %d; want %d times", 100, news, last.Failures, want)
	}
	d.feed("?")
	if d.Result(0).IsNews(last) {
		t.Error("a run that says nothing is news")
	}
	if d.feed("."); !d.Result(0).IsNews(last) {
		t.Error("a pass is no news")
	}
}
