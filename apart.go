package roost

import "time"

// A task that keeps failing on the same machine is kept from it for a while, which doubles with each further failure (Borg §4: no task is put again onto a
// machine on which it crashes). The leader keeps whole requests from a machine by this rule, and a schedd single tasks.
const (
	PairFailures = 2
	FirstApart   = 30 * time.Minute
	LongestApart = 8 * time.Hour
)

// KeptApart is for how long a task is kept from a machine on which it has failed so many times in a row; 0: not at all.
func KeptApart(failures int) time.Duration {
	if failures < PairFailures {
		return 0
	}
	length := FirstApart
	for ; failures > PairFailures && length < LongestApart; failures-- {
		length *= 2
	}
	return min(length, LongestApart)
}
