package roost

import "time"

// A task that keeps failing on the same machine is kept from it for a while, which
// doubles with each further failure (Borg §4: no task is put again onto a machine on
// which it crashes). The leader keeps whole requests from a machine by this rule, and a
// schedd single tasks.
const (
	AvoidPairFailures = 2
	MinAvoidDuration  = 30 * time.Minute
	MaxAvoidDuration  = 8 * time.Hour
)

// AvoidDuration is for how long a task is kept from a machine on which it has failed so
// many times in a row; 0: not at all.
func AvoidDuration(failures int) time.Duration {
	if failures < AvoidPairFailures {
		return 0
	}
	length := MinAvoidDuration
	for ; failures > AvoidPairFailures && length < MaxAvoidDuration; failures-- {
		length *= 2
	}
	return min(length, MaxAvoidDuration)
}
