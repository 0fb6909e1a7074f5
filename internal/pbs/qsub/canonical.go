package qsub

import (
	"fmt"
	"strings"
	"time"
)

// CanonicalValue returns the value of a resource in the form in which OpenPBS shows it.
// Times become 01:02:03, and sizes have lower-case units with a b. An invalid value is
// returned unchanged.
func CanonicalValue(resource, value string) string {
	check := JobWideResources[resource]
	if check == nil {
		check = ChunkResources[resource]
	}
	if check == nil || !check(value) {
		return value
	}
	switch resource {
	case "walltime", "min_walltime", "max_walltime", "soft_walltime", "cput", "pcput":
		if d, ok := parseDuration(value); ok {
			n := int64((d + time.Second/2) / time.Second)
			return fmt.Sprintf("%02d:%02d:%02d", n/3600, n/60%60, n%60)
		}
	case "mem", "vmem", "pmem", "pvmem", "file", "gpu_mem", scratchLocal:
		text := strings.ToLower(value)
		if !strings.HasSuffix(text, "b") && !strings.HasSuffix(text, "w") {
			text += "b"
		}
		return text
	}
	return value
}
