package cron

import "time"

// horizon is how far ahead an instant is searched for. From a 29 February to the next are
// eight years at most.
const horizon = 9 * 366 * 24 * time.Hour

// Next returns the first instant of the schedule after a time, in the schedule's zone. It
// is the zero time if there is none within nine years.
func (s *Schedule) Next(after time.Time) time.Time {
	after = after.In(s.zone)
	next := s.nextOnClock(after)
	if s.everyHour {
		return next
	}
	// An hour that is left out in between has its runs right behind it.
	for at := after; ; {
		_, end := at.ZoneBounds()
		if end.IsZero() || !next.IsZero() && !end.Before(next) || end.Sub(after) > horizon {
			return next
		}
		if s.firesInGap(end) {
			return end.In(s.zone)
		}
		at = end.In(s.zone)
	}
}

// nextOnClock returns the next minute whose reading on the clock fits.
func (s *Schedule) nextOnClock(after time.Time) time.Time {
	t := after.Truncate(time.Minute).Add(time.Minute)
	if _, offset := t.Zone(); offset%60 != 0 { // of a time before zones
		t = t.Add(-time.Duration(t.Second()) * time.Second)
	}
	for end := after.Add(horizon); t.Before(end); {
		switch {
		case s.months&(1<<int(t.Month())) == 0:
			t = laterThan(t, time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, s.zone))
		case !s.fitsDay(t):
			t = laterThan(t, time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, s.zone))
		case s.hours&(1<<t.Hour()) == 0:
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case s.minutes&(1<<t.Minute()) == 0 || !s.everyHour && isSecondReading(t):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// laterThan returns the time to go on from: next, if it is later than t. A midnight that
// does not exist may be the hour before.
func laterThan(t, next time.Time) time.Time {
	for !next.After(t) {
		next = next.Add(time.Hour)
	}
	return next
}

func (s *Schedule) fitsDay(t time.Time) bool {
	day, weekday := s.days&(1<<t.Day()) != 0, s.weekdays&(1<<int(t.Weekday())) != 0
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// isSecondReading reports whether the clock has shown the same before, as it went back
// since.
func isSecondReading(t time.Time) bool {
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return false
	}
	back := offsetAt(start.Add(-time.Second)) - offsetAt(start)
	return back > 0 && t.Sub(start) < back
}

// firesInGap reports whether a reading fits that the clock leaves out at an instant.
func (s *Schedule) firesInGap(at time.Time) bool {
	at = at.In(s.zone)
	before := offsetAt(at.Add(-time.Second))
	gap := offsetAt(at) - before
	for reading := at.UTC().Add(before); gap > 0; gap -= time.Minute {
		if s.months&(1<<int(reading.Month())) != 0 && s.fitsDay(reading) && s.hours&(1<<reading.Hour()) != 0 &&
			s.minutes&(1<<reading.Minute()) != 0 {
			return true
		}
		reading = reading.Add(time.Minute)
	}
	return false
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// In returns a time in the zone of the schedule.
func (s *Schedule) In(t time.Time) time.Time { return t.In(s.zone) }
