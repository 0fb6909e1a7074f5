package roost

import "time"

// BootTime is a reading of CLOCK_BOOTTIME (clock_gettime(2)). That clock counts through
// suspend and is the same for all processes of a host. The code never compares readings
// of two hosts or of two boots.
type BootTime = time.Duration
