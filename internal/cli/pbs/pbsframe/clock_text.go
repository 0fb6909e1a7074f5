package pbsframe

import (
	"fmt"
	"time"
)

// ClockText is a length of time as PBS writes it, "01:02:03".
func ClockText(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}
