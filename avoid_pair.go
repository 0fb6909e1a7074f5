package roost

import "time"

// A task that fails repeatedly on one machine avoids that machine for a time that doubles
// with each further failure (Borg §4: no task is put again onto a machine on which it
// crashes). The leader applies this rule to whole requests, a schedd to single tasks.
const (
	AvoidPairFailures = 2
	MinAvoidDuration  = 30 * time.Minute
	MaxAvoidDuration  = 8 * time.Hour
)

// AvoidDuration returns how long a task avoids a machine after that number of failures in
// a row. 0 means not at all.
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
