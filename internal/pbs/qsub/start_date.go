package qsub

import (
	"strings"
	"time"
)

// setStart parses -a.
func (s *JobSubmission) setStart(v string) error {
	at, ok := parseDate(v, s.Caller.Now)
	if !ok {
		return IllegalValueError('a')
	}
	s.Start = at
	return nil
}

// parseDate parses "[[[[CC]YY]MM]DD]hhmm[.SS]", as touch -t does (POSIX XCU touch). A
// time without a day, and a day without a month, mean the next one; a time in the past is
// not moved.
func parseDate(s string, now time.Time) (time.Time, bool) {
	digits, seconds, dotted := strings.Cut(s, ".")
	layout := map[int]string{4: "1504", 6: "021504", 8: "01021504", 10: "0601021504", 12: "200601021504"}[len(digits)]
	if layout == "" || dotted && len(seconds) != 2 {
		return time.Time{}, false
	}
	if !dotted {
		seconds = "00"
	}
	given := len(digits)
	t, err := time.ParseInLocation(layout+"05", digits+seconds, now.Location())
	if err != nil {
		return time.Time{}, false
	}
	year, month, day := t.Date()
	switch given {
	case 4:
		year, month, day = now.Date()
	case 6:
		year, month = now.Year(), now.Month()
	case 8:
		year = now.Year()
	}
	at := time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
	if at.Before(now) && given == 4 {
		at = time.Date(year, month, day+1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
	}
	if at.Before(now) && given == 6 {
		at = time.Date(year, month+1, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
	}
	return at, at.Day() == day || given == 4
}
