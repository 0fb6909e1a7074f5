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

	MaxServiceRestarts = 1000
	MinBackoff         = 100 * time.Millisecond
	MaxBackoff         = time.Hour
	MinLostAfter       = time.Second
)
