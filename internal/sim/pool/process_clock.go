package pool

import (
	"time"
	"unsafe"
)

// clockReading returns an instant as a Go process reads it: the wall clock together with
// the monotonic clock. Daemons add to such instants and subtract them by the monotonic
// clock (package time, "Monotonic Clocks"), and lose it when they write them down.
// Naively an instant would have the wall clock alone. Then each step of that clock would
// change every measured duration, which does not happen to real daemons. Package time
// makes such instants only from the clocks of this computer, so this function writes
// their representation, which a test checks.
func clockReading(wall time.Time, boot time.Duration) time.Time {
	since := wall.Unix() - year1885
	if since < 0 || since >= 1<<33 { // as in package time: no monotonic clock
		return wall
	}
	at := (*timeLayout)(unsafe.Pointer(&wall))
	at.wall, at.ext = 1<<63|uint64(since)<<30|uint64(wall.Nanosecond()), int64(boot)
	return wall
}

// timeLayout is the memory layout of a time.Time. If the highest bit of wall is set, wall
// holds 33 bits of seconds since 1885 and 30 of nanoseconds, and ext holds the
// nanoseconds of the monotonic clock.
type timeLayout struct {
	wall uint64
	ext  int64
	_    *time.Location
}

// year1885 is the start of that year in unix seconds.
const year1885 = -86400 * ((1969*365 + 1969/4 - 1969/100 + 1969/400) - (1884*365 + 1884/4 - 1884/100 + 1884/400))
