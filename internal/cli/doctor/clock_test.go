package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
)

// skewedCollector answers like a collector whose clock is ahead, after a delay each way.
func skewedCollector(ahead, delay time.Duration, count *int) clockProbe {
	return func(condition string) (bool, error) {
		*count++
		var at int64
		if _, err := fmt.Sscanf(condition, "time() >= %d", &at); err != nil {
			return false, err
		}
		time.Sleep(delay)
		defer time.Sleep(delay)
		return time.Now().Add(ahead).Unix() >= at, nil
	}
}

// TestClockDifference measures collectors with right and wrong clocks, near and far. The
// truth is in the range, the verdict fits, and a right clock costs few questions.
func TestClockDifference(t *testing.T) {
	for _, c := range []struct {
		ahead, delay time.Duration
		level        checkLevel
		text         string
	}{
		{0, time.Millisecond, levelOK, "fits that of the collector"},
		{1500 * time.Millisecond, time.Millisecond, levelOK, "fits"},
		{-1500 * time.Millisecond, time.Millisecond, levelOK, "fits"},
		{0, 1500 * time.Millisecond, levelOK, "fits"},
		{30 * time.Second, 20 * time.Millisecond, levelWarning, "this machine is at least 28s behind the collector"},
		{-30 * time.Second, 20 * time.Millisecond, levelWarning, "s ahead of the collector"},
		{2 * time.Hour, time.Millisecond, levelError, "behind the collector at 10.0.0.1:9701"},
		{-30 * 365 * 24 * time.Hour, time.Millisecond, levelError, "ahead of"},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(40*365*24*time.Hour + 300*time.Millisecond)
			count := 0
			d, err := measureClock(skewedCollector(c.ahead, c.delay, &count))
			if err != nil || c.ahead < d.least || c.ahead > d.most {
				t.Errorf("%v ahead, %v away: got %v to %v, %v", c.ahead, c.delay, d.least, d.most, err)
			}
			f := d.finding("10.0.0.1:9701")
			if f.Level != c.level || !strings.Contains(f.Text, c.text) || (f.Hint == "") != (f.Level == levelOK) {
				t.Errorf("%v ahead, %v away, between %v and %v: %+v", c.ahead, c.delay, d.least, d.most, f)
			}
			if want := map[bool]int{true: 4, false: 50}[c.ahead == 0]; count > want {
				t.Errorf("%v ahead, %v away: %d questions, want at most %d", c.ahead, c.delay, count, want)
			}
		})
	}
}

// TestExamineClock checks that nothing is said of a collector on this machine, nor of one
// that does not answer.
func TestExamineClock(t *testing.T) {
	count := 0
	wrong := skewedCollector(time.Hour, 0, &count)
	for _, own := range []string{"/run/roost/collector.sock", "127.0.0.1:9701", "[::1]:9701", "localhost:9701"} {
		if f := examineClock(own, wrong); f != nil || count > 0 {
			t.Errorf("%s: %v", own, f)
		}
	}
	silent := func(string) (bool, error) { return false, fmt.Errorf("collector: %w", roost.Unavailable) }
	if f := examineClock("192.0.2.1:9701", silent); f != nil {
		t.Errorf("a silent one: %v", f)
	}
	if _, err := measureClock(silent); !errors.Is(err, roost.Unavailable) {
		t.Errorf("a silent one: %v", err)
	}
	if f := examineClock("192.0.2.1:9701", wrong); len(f) != 1 || f[0].Level != levelError {
		t.Errorf("an hour ahead: %v", f)
	}
}
