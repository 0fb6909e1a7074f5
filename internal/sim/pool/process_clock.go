package pool

import (
	"time"
	"unsafe"
)

// clockReading is an instant as a Go process reads it: what the clock on the wall shows,
// and beside it the clock that nobody sets. Daemons add to such instants and take the
// difference of two by the second of these (package time, "Monotonic Clocks"), and lose
// it where they write them down. Naively an instant would have the wall clock alone here:
// then each step of that clock would also be a leap of everything that is measured, and
// break what a real daemon keeps. Package time makes such instants only of the clocks of
// this computer; so this one is written where it keeps them, and a test holds that it
// still does.
func clockReading(wall time.Time, boot time.Duration) time.Time {
	since := wall.Unix() - year1885
	if since < 0 || since >= 1<<33 { // as there: it has no second clock
		return wall
	}
	at := (*timeLayout)(unsafe.Pointer(&wall))
	at.wall, at.ext = 1<<63|uint64(since)<<30|uint64(wall.Nanosecond()), int64(boot)
	return wall
}

// timeLayout is how package time lays out a time: with the highest bit of wall there are
// 33 bits of seconds since 1885 and 30 of nanoseconds in it, and in ext the nanoseconds
// of the clock that nobody sets.
type timeLayout struct {
	wall uint64
	ext  int64
	_    *time.Location
}

// year1885 is when that year began, in unix seconds.
const year1885 = -86400 * ((1969*365 + 1969/4 - 1969/100 + 1969/400) - (1884*365 + 1884/4 - 1884/100 + 1884/400))
