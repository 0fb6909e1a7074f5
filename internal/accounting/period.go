package accounting

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// The lengths of the periods in milliseconds.
const (
	HourMillis Millis = 3_600_000
	DayMillis         = 24 * HourMillis
)

// MillisOf returns the time t; the zero time is 0.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time returns m in UTC; 0 is the zero time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Hour returns the begin of the hour of m.
func (m Millis) Hour() Millis { return floorTo(m, HourMillis) }

// Day returns the begin of the day of m.
func (m Millis) Day() Millis { return floorTo(m, DayMillis) }

// floorTo rounds m down to a multiple of unit, also before 1970.
func floorTo(m, unit Millis) Millis {
	rest := m % unit
	if rest < 0 {
		rest += unit
	}
	return m - rest
}

// Month is a calendar month in UTC, counted from January of the year 0. 0 is no month.
type Month int32

// MonthOf returns the month of m.
func MonthOf(m Millis) Month {
	t := time.UnixMilli(int64(m)).UTC()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// NewMonth returns the month of a year.
func NewMonth(year int, month time.Month) Month { return Month(year*12 + int(month) - 1) }

// Start returns the first millisecond of the month.
func (m Month) Start() Millis {
	return Millis(time.Date(int(m)/12, time.Month(int(m)%12+1), 1, 0, 0, 0, 0, time.UTC).UnixMilli())
}

// End returns the first millisecond after the month.
func (m Month) End() Millis { return (m + 1).Start() }

// Range returns the month as a range of time.
func (m Month) Range() TimeRange { return TimeRange{m.Start(), m.End()} }

// String returns the month as in "2026-11".
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", int(m)/12, int(m)%12+1) }

// ParseMonth reads the form of String.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return 0, fmt.Errorf("month %.20q: %w: write a year and a month, as in 2026-11", text, roost.Invalid)
	}
	return NewMonth(t.Year(), t.Month()), nil
}

// TimeRange is the time from From until before To. A bound of 0 is open.
type TimeRange struct {
	From, To Millis
}

// Contains reports whether m is in the range.
func (r TimeRange) Contains(m Millis) bool { return m >= r.From && (r.To == 0 || m < r.To) }
