package roost

import "time"

// BootTime is a reading of CLOCK_BOOTTIME (clock_gettime(2)), which counts through
// suspend and is the same for all processes of a host. Readings of two hosts, or of two
// boots, are never compared.
type BootTime = time.Duration
