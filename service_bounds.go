package roost

import "time"

// The defaults and bounds of the settings of a service.
const (
	DefaultServiceRestarts = 5 // on one machine within the window
	DefaultRestartWindow   = 10 * time.Minute
	DefaultBackoffFirst    = time.Second
	DefaultBackoffMax      = time.Minute
	// OverlapLostAfter is after what silence a replacement starts by default where the
	// job allows it to run beside the old attempt.
	OverlapLostAfter = 15 * time.Second

	// SilentAfter is for how long a machine must be silent before its tasks of services
	// are lost.
	SilentAfter = 15 * time.Second

	DefaultLogSize      = 10 * MiB // of captured output that is removed at once
	DefaultLogFiles     = 5        // how often that stays
	DefaultLogRetention = 7 * 24 * time.Hour

	MinLogSize      = 64 * KiB
	MaxLogSize      = GiB
	MinLogFiles     = 2
	MaxLogFiles     = 100
	MaxLogRetention = 366 * 24 * time.Hour
	// MaxEarlierLogs is how many attempts of a task have their output kept beside the
	// newest one.
	MaxEarlierLogs = 100

	MaxServiceRestarts = 1000
	MinBackoff         = 100 * time.Millisecond
	MaxBackoff         = time.Hour
	MinLostAfter       = time.Second
)
